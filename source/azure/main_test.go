package azure_test

import (
	"testing"

	"sequins/source"
	"sequins/source/azure"
	"sequins/test/clouds"
	"sequins/test/expect"
)

// options are for a prefix of a server's bucket.
func options(endpoint, prefix string) azure.Options {
	return azure.Options{
		URL: "abfss://" + clouds.Bucket + "@" + clouds.Account + ".dfs.core.windows.net/" + prefix, Endpoint: endpoint, AccountKey: clouds.AccountKey,
	}
}

// open makes a source.
func open(t testing.TB, o azure.Options) source.Source {
	t.Helper()
	src, err := azure.New(o)
	expect.NoError(t, err)
	return src
}

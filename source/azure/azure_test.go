package azure_test

import (
	"strings"
	"testing"

	"sequins/source/azure"
)

// clearEnvironment removes the variables that tell credentials.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING",
		"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST",
		"IDENTITY_ENDPOINT", "IDENTITY_HEADER",
	} {
		t.Setenv(name, "")
	}
}

func TestNew(t *testing.T) {
	clearEnvironment(t)
	const secret = "aHVudGVyMg=="
	for want, o := range map[string]azure.Options{
		"not of the form":                {URL: "abfss:///x"},
		"abfss://container@account":      {URL: "s3://x/y"},
		"must be of the form abfss://c":  {URL: "abfss://c:" + secret + "@a.dfs.core.windows.net/x"},
		"set sas_token":                  {URL: "abfss://c@a.dfs.core.windows.net/x?sig=" + secret},
		"does not name the account":      {URL: "abfss://c/x"},
		"set at most one":                {URL: "abfss://c@a.dfs.core.windows.net/x", AccountKey: secret, SASToken: secret},
		"not an http":                    {URL: "abfss://c@a.dfs.core.windows.net/x", AccountKey: secret, Endpoint: "localhost:10000"},
		"credentials: decode":            {URL: "abfss://c@a.dfs.core.windows.net/x", AccountKey: "!" + secret},
		"endpoint: it is not an http":    {URL: "abfss://c@a.dfs.core.windows.net/x", AccountKey: secret, Endpoint: "https://h/?sig=" + secret},
		"URL without user":               {URL: "abfss://c@a.dfs.core.windows.net/x", AccountKey: secret, Endpoint: "https://u:" + secret + "@h:1x"},
		"endpoint and connection_string": {URL: "abfss://c@a.dfs.core.windows.net/x", ConnectionString: "AccountName=a;AccountKey=" + secret, Endpoint: "http://h"},
		`for the account "b"`:            {URL: "abfss://c@a.dfs.core.windows.net/x", ConnectionString: "AccountName=b;AccountKey=" + secret},
		"credentials: ":                  {URL: "abfss://c@a.dfs.core.windows.net/x", ConnectionString: "AccountName=a;" + secret},
	} {
		if _, err := azure.New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%+v: %v, want %q and no secret", o, err, want)
		}
	}
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey="+secret)
	for want, o := range map[string]azure.Options{
		"does not name the account":                    {URL: "abfss://c/x", AccountKey: secret},
		"endpoint and AZURE_STORAGE_CONNECTION_STRING": {URL: "abfss://c@a.dfs.core.windows.net/x", Endpoint: "http://h"},
	} {
		if _, err := azure.New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%+v: %v, want %q and no secret", o, err, want)
		}
	}
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	for url, want := range map[string]string{
		"abfss://c@a.dfs.core.windows.net":           "abfss://c@a.dfs.core.windows.net/db/1",
		"wasbs://c@a.blob.core.windows.net/x/":       "wasbs://c@a.blob.core.windows.net/x/db/1",
		"abfs://c@a.dfs.core.chinacloudapi.cn//x/./": "abfs://c@a.dfs.core.chinacloudapi.cn/x/db/1",
		"ABFSS://c/x": "abfss://c/x/db/1",
	} {
		if got := open(t, azure.Options{URL: url, Account: "a", AccountKey: secret}).Path("db", "1"); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// TestSecretOfURL: errors of connections do not have the URL, in which a SAS token is.
func TestSecretOfURL(t *testing.T) {
	clearEnvironment(t)
	o := options("http://127.0.0.1:1/devstoreaccount1", "p")
	o.AccountKey, o.SASToken, o.MaxRetries = "", "sv=1&sig=hunter2", 0
	if _, err := open(t, o).Databases(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}

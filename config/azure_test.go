package config

import (
	"strings"
	"testing"
)

// Configurations of Azure with which no node can start are refused, without their secrets.
func TestAzure(t *testing.T) {
	const key = "aHVudGVyMg=="
	for keys, want := range map[string]string{
		"":                                                      "",
		"account_key = \"" + key + "\"":                         "",
		"sas_token = \"?sv=1&sig=a%2fb\"":                       "",
		"account_key_file = \"/none\"":                          "",
		"account_key = \"not base64!\"":                         "azure.account_key: is not base64",
		"account_key = \"ter2\"":                                "",
		"account_key = \"ter23\"":                               "azure.account_key: is not base64",
		"sas_token = \"sv=1&sig=ter2 x\"":                       "azure.sas_token: is not a SAS token",
		"sas_token = \"sv=1&sig=ter2\\nx\"":                     "azure.sas_token: is not a SAS token",
		"sas_token = \"ter2\"":                                  "azure.sas_token: is not a SAS token",
		"endpoint = \"http://h:1/acct\"\nsas_token = \"sig=x\"": "",
	} {
		_, _, err := load("source = \"abfss://c@acct.dfs.core.windows.net/p\"\n[azure]\n" + keys)
		checkAzure(t, keys, err, want)
	}
}

func checkAzure(t *testing.T, keys string, err error, want string) {
	t.Helper()
	got := report(err)
	_, got, _ = strings.Cut(got, ": ")
	if (err != nil) != (want != "") || !strings.HasPrefix(got, want) || strings.Contains(got, "ter2") || strings.Contains(got, "\n") {
		t.Errorf("%s\ngot  %s\nwant %s", keys, got, want)
	}
}

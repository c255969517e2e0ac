package config

import (
	"strings"
	"testing"
)

// Configurations of Azure with which no node can start are refused, without their secrets.
func TestAzure(t *testing.T) {
	const key = "aHVudGVyMg=="
	for _, name := range []string{"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY"} {
		t.Setenv(name, "")
	}
	for keys, want := range map[string]string{
		"":                                  "",
		"account_key = \"" + key + "\"":     "",
		"sas_token = \"?sv=1&sig=a%2fb\"":   "",
		"account_key_file = \"/none\"":      "",
		"account_key = \"not base64!\"":     "azure.account_key: is not base64",
		"account_key = \"ter2\"":            "",
		"account_key = \"ter23\"":           "azure.account_key: is not base64",
		"sas_token = \"sv=1&sig=ter2 x\"":   "azure.sas_token: is not a SAS token",
		"sas_token = \"sv=1&sig=ter2\\nx\"": "azure.sas_token: is not a SAS token",
		"sas_token = \"ter2\"":              "azure.sas_token: is not a SAS token",
		"connection_string = \"AccountName=acct;AccountKey=" + key + ";EndpointSuffix=core.windows.net;\"":                                "",
		"connection_string = \"BlobEndpoint=https://acct.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=x\"":                       "",
		"connection_string = \"BlobEndpoint=https://another.blob.core.windows.net;SharedAccessSignature=sv=1&sig=ter2\"":                  `azure.connection_string: is for the account "another", and the source is in "acct"`,
		"connection_string = \"AccountName=acct;BlobEndpoint=https://Another.DFS.core.chinacloudapi.cn/;SharedAccessSignature=sig=ter2\"": `azure.connection_string: is for the account "another"`,
		"connection_string = \"BlobEndpoint=https://acct-secondary.blob.core.windows.net/;SharedAccessSignature=sig=x\"":                  "",
		"connection_string = \"BlobEndpoint=http://127.0.0.1:10000/another;SharedAccessSignature=sig=x\"":                                 "",
		"connection_string = \"BlobEndpoint=https://blobs.example.com/;SharedAccessSignature=sig=x\"":                                     "",
		"connection_string = \"AccountName=acct;SharedAccessSignature=sv=1&sig=x\"":                                                       "",
		"connection_string = \"AccountName=another;AccountKey=" + key + "\"":                                                              `azure.connection_string: is for the account "another", and the source is in "acct"`,
		"connection_string = \"AccountName=acct;AccountKey=ter2%%\"":                                                                      "azure.connection_string: has an AccountKey that is not base64",
		"connection_string = \"AccountName=acct;ter2\"":                                                                                   "azure.connection_string: is not a connection string of the form",
		"connection_string = \"AccountName=acct; AccountKey=ter2\"":                                                                       "azure.connection_string: has white space",
		"connection_string = \"AccountName=acct\"":                                                                                        "azure.connection_string: has neither AccountName with AccountKey nor",
		"connection_string = \"AccountKey=ter2\"":                                                                                         "azure.connection_string: has neither AccountName nor BlobEndpoint",
		"connection_string = \"AccountName=acct;AccountKey=" + key + ";BlobEndpoint=https://h/?sig=ter2\"":                                "azure.connection_string: has a BlobEndpoint that is not a URL",
		"endpoint = \"http://h:1\"\nconnection_string = \"AccountName=acct;AccountKey=" + key + "\"":                                      "azure.endpoint: is set, and so is a connection string",
		"endpoint = \"http://h:1\"\nconnection_string_file = \"/none\"":                                                                   "azure.endpoint: is set, and so is a connection string",
		"endpoint = \"http://h:1/acct\"\nsas_token = \"sig=x\"":                                                                           "",
	} {
		_, _, err := load("source = \"abfss://c@acct.dfs.core.windows.net/p\"\n[azure]\n" + keys)
		checkAzure(t, keys, err, want)
	}
	for _, test := range []struct{ keys, account, connection, want string }{
		{"", "", "", "source: does not name the account: write abfss://container@account.dfs.core.windows.net/path, or set account in [azure]"},
		{"account_key = \"" + key + "\"", "", "AccountName=a;AccountKey=" + key, "source: does not name the account"},
		{"sas_token_file = \"/none\"", "", "", "source: does not name the account"},
		{"", "", "AccountName=a;AccountKey=" + key, ""},
		{"endpoint = \"http://h:1\"", "", "AccountName=a;AccountKey=" + key, "azure.endpoint: is set, and so is AZURE_STORAGE_CONNECTION_STRING"},
		{"endpoint = \"http://h:1\"", "acct", "AccountName=a;AccountKey=" + key, ""},
		{"endpoint = \"http://h:1\"", "acct", "BlobEndpoint=https://a.blob.core.windows.net;SharedAccessSignature=sig=x", ""},
		{"", "acct\n", "", ""},
		{"account = \"acct\"", "", "", ""},
		{"connection_string = \"AccountName=a;AccountKey=" + key + "\"", "", "", ""},
		{"connection_string_file = \"/none\"", "", "", ""},
		{"account = \"acct\"\nconnection_string = \"AccountName=a;AccountKey=" + key + "\"", "", "", "azure.connection_string: is for the account"},
	} {
		t.Setenv("AZURE_STORAGE_ACCOUNT", test.account)
		t.Setenv("AZURE_STORAGE_CONNECTION_STRING", test.connection)
		_, _, err := load("source = \"abfss://c/p\"\n[azure]\n" + test.keys)
		checkAzure(t, test.keys, err, test.want)
	}
	if _, _, err := load("source = \"/d\"\n[azure]\nconnection_string = \"AccountName=a;AccountKey=" + key + "\""); err != nil {
		t.Errorf("a source elsewhere: %v", err)
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

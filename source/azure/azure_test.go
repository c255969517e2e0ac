package azure_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sequins/source"
	"sequins/source/azure"
)

// clearEnvironment removes the variables that tell credentials.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN",
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
		"not of the form":               {URL: "abfss:///x"},
		"abfss://container@account":     {URL: "s3://x/y"},
		"must be of the form abfss://c": {URL: "abfss://c:" + secret + "@a.dfs.core.windows.net/x"},
		"set sas_token":                 {URL: "abfss://c@a.dfs.core.windows.net/x?sig=" + secret},
		"does not name the account":     {URL: "abfss://c/x"},
		"set at most one":               {URL: "abfss://c@a.dfs.core.windows.net/x", AccountKey: secret, SASToken: secret},
		"not an http":                   {URL: "abfss://c@a.dfs.core.windows.net/x", AccountKey: secret, Endpoint: "localhost:10000"},
		"credentials: decode":           {URL: "abfss://c@a.dfs.core.windows.net/x", AccountKey: "!" + secret},
		"endpoint: it is not an http":   {URL: "abfss://c@a.dfs.core.windows.net/x", AccountKey: secret, Endpoint: "https://h/?sig=" + secret},
		"URL without user":              {URL: "abfss://c@a.dfs.core.windows.net/x", AccountKey: secret, Endpoint: "https://u:" + secret + "@h:1x"},
	} {
		if _, err := azure.New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%+v: %v, want %q and no secret", o, err, want)
		}
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", "a")
	for url, want := range map[string]string{
		"abfss://c@a.dfs.core.windows.net":           "abfss://c@a.dfs.core.windows.net/db/1",
		"wasbs://c@a.blob.core.windows.net/x/":       "wasbs://c@a.blob.core.windows.net/x/db/1",
		"abfs://c@a.dfs.core.chinacloudapi.cn//x/./": "abfs://c@a.dfs.core.chinacloudapi.cn/x/db/1",
		"ABFSS://c/x": "abfss://c/x/db/1",
	} {
		if got := open(t, azure.Options{URL: url, AccountKey: secret}).Path("db", "1"); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// TestWhiteSpace: white space around secrets is left out, and secrets with white space or control characters in them are refused
// without being shown.
func TestWhiteSpace(t *testing.T) {
	clearEnvironment(t)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("sig")+" "+r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/xml")
		_, _ = io.WriteString(w, page(prefixItem("x/db/"), ""))
	}))
	defer server.Close()
	const key = "aHVudGVyMg=="
	o := azure.Options{URL: "abfss://c@a.dfs.core.windows.net/x", Endpoint: server.URL}
	for name, with := range map[string]func(end string) azure.Options{
		"AZURE_STORAGE_KEY":       func(string) azure.Options { return o },
		"AZURE_STORAGE_SAS_TOKEN": func(string) azure.Options { return o },
		"key":                     func(end string) azure.Options { o := o; o.AccountKey = key + end; return o },
		"SAS":                     func(end string) azure.Options { o := o; o.SASToken = "sig=hunter2" + end; return o },
	} {
		t.Run(name, func(t *testing.T) {
			set := func(end string) {
				value := map[string]string{"AZURE_STORAGE_KEY": key, "AZURE_STORAGE_SAS_TOKEN": "?sv=1&sig=hunter2"}[name]
				if value != "" {
					t.Setenv(name, " "+value+end)
				}
				t.Setenv("AZURE_STORAGE_ACCOUNT", "a\n")
			}
			set("\r\n")
			asked = nil
			if _, err := source.Databases(t.Context(), open(t, with("\n"))); err != nil || len(asked) != 1 || asked[0] != "hunter2 " && !strings.HasPrefix(asked[0], " SharedKey a:") {
				t.Errorf("%v, requests %q", err, asked)
			}
			for _, inside := range []string{"\nx", " x", "\x00x", "\u200b"} {
				set(strings.ReplaceAll(inside, "\x00", "\x01")) // variables have no NUL
				_, err := azure.New(with(inside))
				if err == nil || !strings.Contains(err.Error(), "has white space or control characters in it") || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), key) {
					t.Errorf("%q: %v", inside, err)
				}
			}
		})
	}
}

// TestSecretOfURL: errors of connections do not have the URL, in which a SAS token is.
func TestSecretOfURL(t *testing.T) {
	clearEnvironment(t)
	o := options("http://127.0.0.1:1/devstoreaccount1", "p")
	o.AccountKey, o.SASToken, o.MaxRetries = "", "sv=1&sig=hunter2", -1
	if _, err := source.Databases(t.Context(), open(t, o)); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
	for _, endpoint := range []string{"http://u:hunter2@h:1x/", "http://h/%zz", "http://127.0.0.1:1/?sig=hunter2"} {
		src, err := azure.New(azure.Options{URL: o.URL, Endpoint: endpoint, SASToken: "sv=1&sig=hunter2%2f"})
		if err == nil {
			_, err = source.Databases(t.Context(), src)
		}
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

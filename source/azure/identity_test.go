package azure_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sequins/source"
	"sequins/source/azure"
	"sequins/test/expect"
	"sequins/test/process"
)

// TestMain makes the certificate of servers of httptest one that clients trust.
func TestMain(m *testing.M) {
	process.Parallel(12) // they wait more than they compute
	dir, err := os.MkdirTemp("", "certificates")
	if err != nil {
		panic(err)
	}
	s := httptest.NewTLSServer(http.NotFoundHandler())
	file := filepath.Join(dir, "ca.pem")
	err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600)
	s.Close()
	if err = errors.Join(err, os.Setenv("SSL_CERT_FILE", file)); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// cloud is Microsoft Entra, the identity endpoint of a machine, and a storage account that wants their tokens.
type cloud struct {
	*httptest.Server
	mu      sync.Mutex
	proof   string // what a client must show for a token
	issued  int
	wanted  string // the token that the storage wants
	expires time.Duration
}

func newCloud(t testing.TB) *cloud {
	c := &cloud{expires: time.Hour}
	c.Server = httptest.NewTLSServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *cloud) want(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = token
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
		reply(w, map[string]any{"authorization_endpoint": c.URL + "/tenant/oauth2/v2.0/authorize", "token_endpoint": c.URL + "/tenant/oauth2/v2.0/token", "issuer": c.URL + "/tenant/v2.0"})
	case strings.HasSuffix(r.URL.Path, "/token"):
		c.token(w, r)
	case r.URL.Query().Get("comp") == "list":
		if r.Header.Get("Authorization") != "Bearer "+c.wanted {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer authorization_uri="%s/tenant/oauth2/authorize" resource_id="https://storage.azure.com"`, c.URL))
			w.Header().Set("X-Ms-Error-Code", "InvalidAuthenticationInfo")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/xml")
		_, _ = io.WriteString(w, page(prefixItem("db/"), ""))
	default:
		http.NotFound(w, r)
	}
}

// token answers a request for a token, which is numbered.
func (c *cloud) token(w http.ResponseWriter, r *http.Request) {
	shown := r.FormValue("client_assertion") + r.FormValue("client_secret") + r.Header.Get("X-Identity-Header")
	if shown != c.proof {
		w.WriteHeader(http.StatusBadRequest)
		reply(w, map[string]any{"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."})
		return
	}
	c.issued++
	reply(w, map[string]any{
		"token_type": "Bearer", "access_token": fmt.Sprint("token-", c.issued), "expires_in": int(c.expires.Seconds()),
		"expires_on": fmt.Sprint(time.Now().Add(c.expires).Unix()), "resource": "https://storage.azure.com",
	})
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// list lists the databases of an account whose credentials are in the environment.
func list(t *testing.T, src source.Source) error {
	t.Helper()
	dbs, err := source.Databases(t.Context(), src)
	if err == nil && len(dbs) != 1 {
		t.Errorf("databases %v", dbs)
	}
	return err
}

func identityOptions(c *cloud) azure.Options {
	return azure.Options{URL: "abfss://bucket@account.dfs.core.windows.net/", Endpoint: c.URL}
}

// TestIdentities uses each kind of identity.
func TestIdentities(t *testing.T) {
	for name, set := range map[string]func(t *testing.T, c *cloud){
		"client secret": func(t *testing.T, c *cloud) {
			c.proof = "hunter2"
			t.Setenv("AZURE_CLIENT_SECRET", c.proof+"\n") // as Kubernetes Secrets often have it
		},
		"workload": func(t *testing.T, c *cloud) {
			c.proof = "a JWT of the cluster"
			file := filepath.Join(t.TempDir(), "token")
			expect.NoError(t, os.WriteFile(file, []byte(c.proof), 0o600))
			t.Setenv("AZURE_FEDERATED_TOKEN_FILE", file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			clearEnvironment(t)
			c := newCloud(t)
			t.Setenv("AZURE_AUTHORITY_HOST", c.URL+"/")
			t.Setenv("AZURE_TENANT_ID", "tenant")
			t.Setenv("AZURE_CLIENT_ID", "client-id")
			set(t, c)
			src := open(t, identityOptions(c))
			c.want("token-1")
			for range 2 {
				expect.NoError(t, list(t, src))
			}
			c.want("another's")
			err := list(t, src)
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "client-id") || strings.Contains(err.Error(), "token-") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v, want fs.ErrPermission with the identity and no secret", err)
			}
			if c.issued > 4 {
				t.Errorf("%d tokens were requested", c.issued)
			}
		})
	}
}

// TestManagedIdentity: a token of the machine, which is renewed when it has expired.
func TestManagedIdentity(t *testing.T) {
	clearEnvironment(t)
	c := newCloud(t)
	c.proof = "the header of the machine"
	t.Setenv("IDENTITY_ENDPOINT", c.URL+"/msi/token")
	t.Setenv("IDENTITY_HEADER", c.proof)
	c.expires = -time.Second // expired when it arrives, so that each request needs another
	src := open(t, identityOptions(c))
	for n := range 3 {
		c.want(fmt.Sprint("token-", n+1))
		if err := list(t, src); err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
	}
}

// TestNoIdentity: a refused secret is fs.ErrPermission, with what Entra said.
func TestNoIdentity(t *testing.T) {
	clearEnvironment(t)
	c := newCloud(t)
	c.proof = "right"
	t.Setenv("AZURE_AUTHORITY_HOST", c.URL+"/")
	t.Setenv("AZURE_TENANT_ID", "tenant")
	t.Setenv("AZURE_CLIENT_ID", "client-id")
	t.Setenv("AZURE_CLIENT_SECRET", "hunter2")
	err := list(t, open(t, identityOptions(c)))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "AADSTS7000215") || !strings.Contains(err.Error(), "client-id") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
	t.Setenv("AZURE_TENANT_ID", "")
	if _, err := azure.New(identityOptions(c)); err == nil || !strings.Contains(err.Error(), "AZURE_TENANT_ID") {
		t.Errorf("no tenant: %v", err)
	}
}

//go:build integration

package s3_test

import (
	"encoding/json"
	"errors"
	"fmt"
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
	"sequins/source/s3"
	"sequins/test/expect"
	"sequins/test/gateway"
)

// issuer issues credentials of a gateway as STS does for a web identity (IRSA), and as the agent of EKS Pod Identity does, but
// for the session token, which the gateway does not know.
type issuer struct {
	*httptest.Server
	mu      sync.Mutex
	shown   []string // the tokens of the pod
	valid   time.Duration
	refuses bool
}

func newIssuer(t testing.TB) *issuer {
	s := &issuer{valid: time.Hour}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := time.Now().Add(s.valid).UTC().Format(time.RFC3339)
	switch {
	case s.refuses:
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>`)
	case r.URL.Path == "/v1/credentials":
		s.shown = append(s.shown, r.Header.Get("Authorization"))
		_ = json.NewEncoder(w).Encode(map[string]string{"AccessKeyId": gateway.AccessKey, "SecretAccessKey": gateway.SecretKey, "Token": "", "Expiration": until})
	case r.FormValue("Action") == "AssumeRoleWithWebIdentity" && r.FormValue("RoleArn") == "arn:aws:iam::123456789012:role/sequins":
		s.shown = append(s.shown, r.FormValue("WebIdentityToken"))
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>`+
			`<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken></SessionToken><Expiration>%s</Expiration>`+
			`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, gateway.AccessKey, gateway.SecretKey, until)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (s *issuer) tokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.shown...)
}

// TestPodCredentials uses the credentials that a pod of EKS has: temporary ones, for which its token is read again when they
// expire.
func TestPodCredentials(t *testing.T) {
	g := gateway.Start(t)
	g.Put(t, "p/db/1/file", []byte("x"))
	for name, set := range map[string]func(t *testing.T, s *issuer, token string){
		"IRSA": func(t *testing.T, s *issuer, token string) {
			t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/sequins")
			t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
			t.Setenv("AWS_ENDPOINT_URL_STS", s.URL)
		},
		"Pod Identity": func(t *testing.T, s *issuer, token string) {
			t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", s.URL+"/v1/credentials")
			t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token)
		},
	} {
		t.Run(name, func(t *testing.T) {
			noCredentials(t)
			s := newIssuer(t)
			token := filepath.Join(t.TempDir(), "token")
			rotate := func(text string) {
				expect.NoError(t, os.WriteFile(token, []byte(text), 0o600))
			}
			rotate("first")
			set(t, s, token)
			o := s3.Options{URL: "s3://bucket/p", Region: gateway.Region, Endpoint: g.Endpoint(), PathStyle: true}
			src := open(t, o)
			list := func() error { _, err := source.Databases(t.Context(), src); return err }
			s.mu.Lock()
			s.valid = time.Second // expired before the next request, by the margin of the SDK or by the clock
			s.mu.Unlock()
			expect.NoError(t, list())
			rotate("second")
			s.mu.Lock()
			s.valid = time.Hour
			s.mu.Unlock()
			deadline := time.Now().Add(20 * time.Second)
			for len(s.tokens()) < 2 && time.Now().Before(deadline) {
				expect.NoError(t, list())
			}
			for range 3 {
				expect.NoError(t, list())
			}
			if got := strings.Join(s.tokens(), " "); got != "first second" {
				t.Errorf("the tokens %q were shown, want each once", got)
			}
			s.mu.Lock()
			s.refuses = true
			s.mu.Unlock()
			_, err := source.Databases(t.Context(), open(t, o))
			if err == nil || !strings.Contains(err.Error(), "s3://bucket/p/") || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

// noCredentials hides the credentials of whoever runs the test.
func noCredentials(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_ENDPOINT_URL_STS"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

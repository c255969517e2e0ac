//go:build integration

package s3

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/process"
)

// TestWebIdentity: a node and its load processes get temporary credentials for the token of a pod, from the variables of the
// environment that EKS sets (IRSA), and get others when these expire.
func TestWebIdentity(t *testing.T) {
	g := gateway.Start(t)
	var mu sync.Mutex
	asked := map[string]int{} // by the token that was shown
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.FormValue("WebIdentityToken")]++
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>`+
			`<AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken></SessionToken><Expiration>%s</Expiration>`+
			`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
			gateway.AccessKey, gateway.SecretKey, time.Now().Add(time.Second).UTC().Format(time.RFC3339))
	}))
	defer sts.Close()
	count := func(token string) int {
		mu.Lock()
		defer mu.Unlock()
		return asked[token]
	}
	file := filepath.Join(t.TempDir(), "token")
	rotate := func(token string) {
		expect.NoError(t, os.WriteFile(file, []byte(token), 0o600))
	}
	rotate("first")
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/sequins")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	t.Setenv("AWS_REGION", gateway.Region)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	upload(t, g, "db", "1", 3, 2000)
	c := configure(t, g.Endpoint(), "")
	c.Sections = fmt.Sprintf("[s3]\nendpoint = %q\npath_style = true\n", g.Endpoint())
	n := process.Serve(t, c, "db", "1")
	n.ExpectKeys(t, "db", "1", "1", 2000)
	rotate("second")
	n.WaitFor(t, "the node shows the new token", func() bool { return count("second") > 0 })
	upload(t, g, "db", "2", 3, 2000)
	n.WaitCurrent(t, "db", "2")
	n.ExpectKeys(t, "db", "2", "2", 2000)
	if n := count("first"); n < 2 {
		t.Errorf("the first token was shown %d times, want by the node and by its load process", n)
	}
}

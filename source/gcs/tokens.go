package gcs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/sync/singleflight"

	"sequins/source/objects"
)

// scope is what tokens are for: reading and writing objects.
const scope = "https://www.googleapis.com/auth/devstorage.read_write"

// tokens are the access tokens of requests. The library keeps a token until it expires.
type tokens struct {
	http   *http.Client // for requests for tokens
	flight singleflight.Group

	mu     sync.Mutex
	source oauth2.TokenSource // nil before the first token, and after one that was not issued
	from   string             // where the credentials are from, for messages
}

// Do implements policy.Policy: a request has a token.
func (t *tokens) Do(req *policy.Request) (*http.Response, error) {
	token, err := t.get(req.Raw().Context())
	if err != nil {
		return nil, err
	}
	req.Raw().Header.Set("Authorization", "Bearer "+token)
	return req.Next()
}

// get returns a token. Requests for tokens have no context, so a call does not wait for one beyond its own.
func (t *tokens) get(ctx context.Context) (string, error) {
	result := t.flight.DoChan("", func() (any, error) { return t.fetch() })
	select {
	case r := <-result:
		if r.Err != nil {
			return "", r.Err
		}
		return r.Val.(string), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (t *tokens) fetch() (string, error) {
	source, from := t.known()
	if source == nil {
		var err error
		if source, from, err = t.find(); err != nil {
			return "", objects.Permanent(objects.Redact(fmt.Errorf("credentials: %w", err)))
		}
	}
	token, err := source.Token()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.source, t.from = source, from; err != nil {
		t.source = nil // a file that has been replaced is read again
		return "", explainToken(from, err)
	}
	return token.AccessToken, nil
}

func (t *tokens) known() (oauth2.TokenSource, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.source, t.from
}

// explainToken returns the error of a request for a token. A refused one is permanent. URLs of credentials can have secrets.
func explainToken(from string, err error) error {
	err = fmt.Errorf("no token for %s: %w", from, objects.Redact(err))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil && refused.Response.StatusCode < 500 && refused.Response.StatusCode != http.StatusTooManyRequests {
		return objects.Permanent(err)
	}
	return err
}

// find finds the credentials. The context of requests for tokens is that of the process.
func (t *tokens) find() (oauth2.TokenSource, string, error) {
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, t.http)
	file := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
	found, err := google.FindDefaultCredentials(ctx, scope)
	switch {
	case err != nil && file == "":
		return nil, "", fmt.Errorf("%w; set GOOGLE_APPLICATION_CREDENTIALS", err)
	case err != nil:
		return nil, "", fmt.Errorf("%s: %w", file, err)
	}
	return found.TokenSource, owner(found.JSON, cmp.Or(file, "gcloud's application default credentials")), nil
}

// owner returns whose credentials a file has.
func owner(doc []byte, place string) string {
	var told struct {
		Type  string `json:"type"`
		Email string `json:"client_email"`
		URL   string `json:"service_account_impersonation_url"`
	}
	switch err := json.Unmarshal(doc, &told); {
	case len(doc) == 0:
		return "the service account of the metadata server"
	case err != nil:
		return place
	case told.Email != "":
		return fmt.Sprintf("the service account %s, from %s", told.Email, place)
	}
	return fmt.Sprintf("credentials of the type %s, from %s", told.Type, place)
}

package gcs_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sequins/source"
	"sequins/source/gcs"
	"sequins/test/expect"
	"sequins/test/noise"
)

// TestRefusedToken: readers share a token, and one that is refused is fs.ErrPermission.
func TestRefusedToken(t *testing.T) {
	s := newServer(t)
	s.put("db/1/file", noise.Random(1, 3<<20))
	issued := 0
	tokens := newTokenServer(t, func() (string, int, int) {
		issued++
		return strings.Repeat("t", issued), 3600, http.StatusOK
	})
	s.setToken("t")
	o := at(s.URL, "")
	o.credentials = true
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", federation(t, filepath.Join(t.TempDir(), "credentials.json"), tokens.URL))
	src := open(t, o)
	if b, err := read(t, src); err != nil || len(b) != 3<<20 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if issued != 1 {
		t.Errorf("%d tokens for one reader", issued)
	}
	s.setToken("another's")
	_, err := source.Databases(t.Context(), src)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")) || strings.Contains(err.Error(), "ttt") {
		t.Errorf("%v, want fs.ErrPermission with the place of the credentials and no token", err)
	}
}

// TestExpiredToken: tokens are renewed before they expire.
func TestExpiredToken(t *testing.T) {
	s := newServer(t)
	s.put("db/1/file", []byte("x"))
	issued := 0
	tokens := newTokenServer(t, func() (string, int, int) {
		issued++
		return "token", 1, http.StatusOK // which is less than the library keeps a token before it expires
	})
	s.setToken("token")
	o := at(s.URL, "")
	o.credentials = true
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", federation(t, filepath.Join(t.TempDir(), "credentials.json"), tokens.URL))
	src := open(t, o)
	for range 3 {
		if _, err := source.Databases(t.Context(), src); err != nil {
			t.Fatal(err)
		}
	}
	if issued < 3 {
		t.Errorf("%d tokens for three requests", issued)
	}
}

// TestNoToken: a token that is not issued for now is requested again, and credentials that are none are an error that names the file.
func TestNoToken(t *testing.T) {
	s := newServer(t)
	s.put("db/1/file", []byte("x"))
	dir := t.TempDir()
	statuses := []int{http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusOK}
	tokens := newTokenServer(t, func() (string, int, int) {
		status := statuses[0]
		statuses = statuses[1:]
		return "token", 3600, status
	})
	s.setToken("token")
	o := at(s.URL, "")
	o.credentials = true
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", federation(t, filepath.Join(dir, "credentials.json"), tokens.URL))
	if dbs, err := source.Databases(t.Context(), open(t, o)); err != nil || len(dbs) != 1 {
		t.Errorf("%v, %v", dbs, err)
	}
	statuses = slices.Repeat([]int{http.StatusBadRequest}, 10)
	if _, err := source.Databases(t.Context(), open(t, o)); err == nil || !strings.Contains(err.Error(), "no token") {
		t.Errorf("%v", err)
	}
	for name, text := range map[string]string{"none": "", "no JSON": "x", "no type": "{}"} {
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
		if text != "" {
			expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
		if _, err := source.Databases(t.Context(), open(t, o)); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSecretOfCredentials: errors of requests for tokens do not have what is secret in URLs of the credentials.
func TestSecretOfCredentials(t *testing.T) {
	s := newServer(t)
	tokens := newTokenServer(t, func() (string, int, int) { return "token", 3600, http.StatusOK })
	for _, test := range []struct{ source, token, want string }{
		{"http://u:hunter2@127.0.0.1:1/subject?key=hunter2", tokens.URL, "refused"},
		{"http://127.0.0.1:1/subject?key=hunter2 \" hunter2\\n", tokens.URL, "invalid control character"},
		{tokens.URL + "/?key=hunter2", "http://u:hunter2@127.0.0.1:1/?key=hunter2", "refused"},
	} {
		file := filepath.Join(t.TempDir(), "credentials.json")
		doc, err := json.Marshal(map[string]any{
			"type": "external_account", "audience": "a", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": test.token,
			"credential_source": map[string]any{"url": strings.ReplaceAll(test.source, "\\n", "\n")},
		})
		expect.NoError(t, errors.Join(err, os.WriteFile(file, doc, 0o600)))
		o := at(s.URL, "")
		o.credentials, o.MaxRetries = true, -1
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
		src := open(t, o)
		_, err = source.Databases(t.Context(), src)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %q and no secret", err, test.want)
		}
	}
}

// TestEnvironment finds credentials where other programs do: a file, gcloud's file, the metadata server, an emulator.
func TestEnvironment(t *testing.T) {
	s := newServer(t)
	s.put("db/1/file", []byte("x"))
	issued := ""
	tokens := newTokenServer(t, func() (string, int, int) { return issued, 3600, http.StatusOK })
	home := t.TempDir()
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	t.Setenv("HOME", home)
	file := filepath.Join(home, ".config", "gcloud", "application_default_credentials.json")
	expect.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		if strings.HasSuffix(r.URL.Path, "/token") {
			answer(w, map[string]any{"access_token": "metadata", "token_type": "Bearer", "expires_in": 3600})
		}
	}))
	defer metadata.Close()
	o := at(s.URL, "")
	o.credentials = true
	find := func(want string) {
		t.Helper()
		s.setToken(want)
		if _, err := source.Databases(t.Context(), open(t, o)); err != nil {
			t.Errorf("%s: %v", want, err)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(metadata.URL, "http://"))
	find("metadata")
	federation(t, file, tokens.URL)
	issued = "gcloud"
	find("gcloud")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", federation(t, filepath.Join(home, "workload"), tokens.URL))
	issued = "workload"
	find("workload")
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(s.URL, "http://")+"\n")
	s.setToken("")
	src, err := gcs.New(gcs.Options{URL: "gs://bucket/"})
	expect.NoError(t, err)
	if dbs, err := source.Databases(t.Context(), src); err != nil || len(dbs) != 1 {
		t.Errorf("%v, %v", dbs, err)
	}
}

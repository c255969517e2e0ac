//go:build integration

package azure_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"sequins/source"
	"sequins/source/azure"
	"sequins/test/clouds"
	"sequins/test/expect"
	"sequins/test/objectstest"
	"sequins/test/sourcetest"
)

// folders is a place with the directories of a storage account with a hierarchical namespace.
type folders struct{ objectstest.Place }

func (p folders) Mkdir(t *testing.T, name string) bool {
	p.Server.(*clouds.Azurite).PutFolder(t, p.Prefix+"/"+name)
	return true
}

func TestConformance(t *testing.T) {
	server := clouds.SharedAzurite(t)
	sourcetest.Run(t, 0, func(t *testing.T) sourcetest.Place {
		return folders{objectstest.NewPlace(t, server, func(t testing.TB, prefix string) source.Source { return open(t, options(server.Endpoint(), prefix)) })}
	})
}

func TestObjects(t *testing.T) {
	objectstest.Run(t, objectstest.Store{
		Bucket: clouds.Bucket, Shared: clouds.SharedAzurite(t), URL: "abfss://%s@devstoreaccount1.dfs.core.windows.net/",
		Start: func(t testing.TB) objectstest.Server { return clouds.StartAzurite(t) },
		Open: func(o objectstest.Options) (source.Source, error) {
			of := options(o.Endpoint, "")
			of.URL, of.Options = "abfss://"+o.Bucket+"@"+clouds.Account+".dfs.core.windows.net/"+o.Prefix, o.Options
			return azure.New(of)
		},
	})
}

// signedURL returns a SAS token of the container that is valid for a time.
func signedURL(t *testing.T, valid time.Duration) string {
	t.Helper()
	key, err := container.NewSharedKeyCredential(clouds.Account, clouds.AccountKey)
	expect.NoError(t, err)
	q, err := sas.BlobSignatureValues{
		Protocol: sas.ProtocolHTTPSandHTTP, StartTime: time.Now().Add(-time.Hour).UTC(), ExpiryTime: time.Now().Add(valid).UTC(),
		Permissions: (&sas.ContainerPermissions{Read: true, List: true}).String(), ContainerName: clouds.Bucket,
	}.SignWithSharedKey(key)
	expect.NoError(t, err)
	return q.Encode()
}

// TestCredentials reads with each kind of credentials of an account, from the options and from the environment.
func TestCredentials(t *testing.T) {
	server := clouds.SharedAzurite(t)
	server.Put(t, "credentials/db/1/file", []byte("x"))
	token := signedURL(t, time.Hour)
	clearEnvironment(t)
	named := azure.Options{URL: "abfss://" + clouds.Bucket + "@" + clouds.Account + ".dfs.core.windows.net/credentials", Endpoint: server.Endpoint()}
	short := azure.Options{URL: "abfss://" + clouds.Bucket + "/credentials", Endpoint: server.Endpoint()}
	find := func(what string, o azure.Options) {
		t.Helper()
		src := open(t, o)
		if dbs, err := source.Databases(t.Context(), src); err != nil || len(dbs) != 1 {
			t.Errorf("%s: %v, %v", what, dbs, err)
		}
		f, err := src.Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		f.Close()
	}
	with := func(o azure.Options, change func(*azure.Options)) azure.Options {
		change(&o)
		return o
	}
	find("key", with(named, func(o *azure.Options) { o.AccountKey = clouds.AccountKey }))
	find("SAS", with(named, func(o *azure.Options) { o.SASToken = token }))
	find("SAS with ?", with(named, func(o *azure.Options) { o.SASToken = "?" + token }))
	t.Setenv("AZURE_STORAGE_ACCOUNT", clouds.Account)
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", token)
	find("SAS of the environment", named)
	find("account and SAS of the environment", short)
	t.Setenv("AZURE_STORAGE_KEY", clouds.AccountKey)
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sig=wrong")
	find("key of the environment", named)
	t.Setenv("AZURE_STORAGE_KEY", "d3Jvbmc=")
	find("the configuration before the environment", with(named, func(o *azure.Options) { o.AccountKey = clouds.AccountKey }))
}

// TestOtherAccount: credentials of the environment for another account are not used.
func TestOtherAccount(t *testing.T) {
	server := clouds.SharedAzurite(t)
	clearEnvironment(t)
	t.Setenv("AZURE_STORAGE_ACCOUNT", "another")
	t.Setenv("AZURE_STORAGE_KEY", clouds.AccountKey)
	t.Setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:1/token")
	t.Setenv("IDENTITY_HEADER", "x")
	o := options(server.Endpoint(), "")
	o.AccountKey, o.MaxRetries = "", -1
	_, err := source.Databases(t.Context(), open(t, o))
	if err == nil || strings.Contains(err.Error(), "AZURE_STORAGE_KEY") {
		t.Errorf("%v, want an error of the managed identity", err)
	}
}

// TestRefused has wrong credentials. None of it is tried again, and no secret is told.
func TestRefused(t *testing.T) {
	server := clouds.SharedAzurite(t)
	server.Put(t, "p/db/1/file", []byte("x"))
	clearEnvironment(t)
	for name, spoil := range map[string]func(*azure.Options){
		"wrong key":   func(o *azure.Options) { o.AccountKey = "aHVudGVyMg==" },
		"expired SAS": func(o *azure.Options) { o.AccountKey, o.SASToken = "", signedURL(t, -time.Minute) },
		"no such SAS": func(o *azure.Options) { o.AccountKey, o.SASToken = "", "sv=2021-12-02&sr=c&sp=rl&sig=aHVudGVyMg" },
	} {
		o := options(server.Endpoint(), "p")
		spoil(&o)
		src := open(t, o)
		_, listErr := source.Databases(t.Context(), src)
		_, openErr := src.Open(t.Context(), "db", "1", source.File{Name: "file"}, source.ReadOptions{})
		for _, err := range []error{listErr, openErr} {
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "@devstoreaccount1.dfs.core.windows.net/p/") || !strings.Contains(err.Error(), "the configuration") {
				t.Errorf("%s: %v, want fs.ErrPermission with the URL and the place of the credentials", name, err)
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVudGVyMg") || strings.Contains(err.Error(), "sig=") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, which tells the secret or has several lines", name, err)
			}
		}
	}
}

// TestFolders: blobs that stand for directories are no files, and exist when nothing is in them.
func TestFolders(t *testing.T) {
	server := clouds.SharedAzurite(t)
	for _, dir := range []string{"folders", "folders/db", "folders/db/1", "folders/db/1/day=1", "folders/db/2", "folders/empty", "folders/db/1/logs"} {
		server.PutFolder(t, dir)
	}
	server.Put(t, "folders/db/1/day=1/part-0", []byte("x"))
	server.Put(t, "folders/db/1/part-0", nil) // as empty as a directory
	server.Put(t, "folders/db/1/logs/x", nil)
	src := open(t, options(server.Endpoint(), "folders"))
	if dbs, err := source.Databases(t.Context(), src); err != nil || strings.Join(dbs, " ") != "db empty" {
		t.Errorf("databases %v, %v", dbs, err)
	}
	if versions, err := source.Versions(t.Context(), src, "db"); err != nil || strings.Join(versions, " ") != "1 2" {
		t.Errorf("versions %v, %v", versions, err)
	}
	if versions, err := source.Versions(t.Context(), src, "empty"); err != nil || len(versions) > 0 {
		t.Errorf("versions of an empty directory: %v, %v", versions, err)
	}
	c, err := src.Contents(t.Context(), "db", "1")
	if err != nil || len(c.Files) != 2 || c.Files[0].Name != "day=1/part-0" || c.Files[1].Name != "part-0" || strings.Join(c.Dirs, " ") != "logs" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := src.Contents(t.Context(), "db", "2"); err != nil || len(c.Files) > 0 {
		t.Errorf("an empty version: %+v, %v", c, err)
	}
	if _, err := src.Contents(t.Context(), "db", "3"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no version: %v", err)
	}
	if _, err := src.Open(t.Context(), "db", "1", source.File{Name: "logs"}, source.ReadOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was opened: %v", err)
	}
}

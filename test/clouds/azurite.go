package clouds

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/once"
	"sequins/test/ports"
	"sequins/test/process"
)

// The account of every Azurite, and its key, which its documentation names.
const (
	Account    = "devstoreaccount1"
	AccountKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==" //nolint:gosec // public
)

// Azurite is a running Azurite.
type Azurite struct {
	*gateway.Process
	client *azblob.Client
}

// StartAzurite runs a server until the test ends.
func StartAzurite(t testing.TB) *Azurite {
	t.Helper()
	a, err := runAzurite(t.Context())
	expect.NoError(t, err)
	t.Cleanup(a.Kill)
	return a
}

var shared = sync.OnceValues(func() (*Azurite, error) { return runAzurite(context.Background()) })

// SharedAzurite returns the one server of this process, which runs until its end, for tests that do not stop it. Each uses a
// directory of its own.
func SharedAzurite(t testing.TB) *Azurite {
	t.Helper()
	a, err := shared()
	expect.NoError(t, err)
	return a
}

// runAzurite runs a server, which keeps its blobs in memory, until Kill or the end of this process.
func runAzurite(ctx context.Context) (*Azurite, error) {
	module := filepath.Join(process.Root(), "test", "clouds", "azurite")
	installed, err := once.Dir(filepath.Join(process.Root(), ".cache", "azurite"), func(dir string) error {
		if err := os.CopyFS(dir, os.DirFS(module)); err != nil {
			return err
		}
		return gateway.Command(dir, "npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")
	}, module)
	if err != nil {
		return nil, err
	}
	addr, err := ports.Free()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	p, err := gateway.RunProcess(addr, "node", filepath.Join(installed, "node_modules", "azurite", "dist", "src", "blob", "main.js"),
		"--blobHost", host, "--blobPort", port, "--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck")
	if err != nil {
		return nil, err
	}
	a := &Azurite{Process: p}
	key, err := azblob.NewSharedKeyCredential(Account, AccountKey)
	if err == nil {
		a.client, err = azblob.NewClientWithSharedKeyCredential(a.Endpoint(), key, nil)
	}
	if err == nil {
		_, err = a.client.CreateContainer(ctx, Bucket, nil)
	}
	if err != nil {
		p.Kill()
		return nil, err
	}
	return a, nil
}

// Endpoint returns the URL of the account.
func (a *Azurite) Endpoint() string { return a.Process.Endpoint() + "/" + Account }

// Put writes a blob.
func (a *Azurite) Put(t testing.TB, key string, data []byte) {
	t.Helper()
	a.upload(t, key, data, nil)
}

// PutFolder writes an empty blob that stands for a directory, as Hadoop's WASB does.
func (a *Azurite) PutFolder(t testing.TB, key string) {
	t.Helper()
	a.upload(t, key, nil, &blockblob.UploadBufferOptions{Metadata: map[string]*string{"hdi_isfolder": to.Ptr("true")}})
}

func (a *Azurite) upload(t testing.TB, key string, data []byte, o *blockblob.UploadBufferOptions) {
	t.Helper()
	if _, err := a.client.UploadBuffer(t.Context(), Bucket, key, data, o); err != nil {
		t.Fatalf("putting %s: %v", key, err)
	}
}

// Remove removes a blob.
func (a *Azurite) Remove(t testing.TB, key string) {
	t.Helper()
	if _, err := a.client.DeleteBlob(context.WithoutCancel(t.Context()), Bucket, key, nil); err != nil {
		t.Fatalf("removing %s: %v", key, err)
	}
}

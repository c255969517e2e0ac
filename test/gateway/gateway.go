// Package gateway runs a real S3 server for tests: versitygw, which stores objects as files and checks signatures.
// Build builds it, and the servers of other packages; Start runs a server that is stopped with the test; Proxy puts toxiproxy in
// front of it.
package gateway

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"sequins/test/expect"
	"sequins/test/ports"
)

// The user and the bucket of every gateway.
const (
	AccessKey = "GATEWAYKEY"
	SecretKey = "gateway-secret"
	Region    = "us-east-1"
	Bucket    = "bucket"
)

// Gateway is a running server.
type Gateway struct {
	*Process
	client *s3.Client
}

// Start runs a server with an empty bucket until the test ends.
func Start(t testing.TB) *Gateway {
	t.Helper()
	g, err := Run(t.Context(), t.TempDir())
	expect.NoError(t, err)
	t.Cleanup(g.Kill)
	return g
}

// Run runs a server with an empty bucket, which keeps its objects in a directory, until Kill.
func Run(ctx context.Context, dir string) (*Gateway, error) {
	binary, err := Build("./versitygw")
	if err != nil {
		return nil, err
	}
	addr, err := ports.Free()
	if err != nil {
		return nil, err
	}
	p, err := RunProcess(addr, binary, addr, AccessKey, SecretKey, Region, dir)
	if err != nil {
		return nil, err
	}
	g := &Gateway{Process: p}
	g.client = Client(g.Endpoint())
	if _, err = g.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(Bucket)}); err != nil {
		g.Kill()
		return nil, err
	}
	return g, nil
}

// Client returns a client of a gateway or of a proxy in front of it.
func Client(endpoint string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &endpoint, Region: Region, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
	})
}

// Put writes an object. A key that ends in a slash stands for a directory.
func (g *Gateway) Put(t testing.TB, key string, data []byte) {
	t.Helper()
	_, err := g.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(Bucket), Key: &key, Body: bytes.NewReader(data)})
	if err != nil {
		t.Fatalf("putting %s: %v", key, err)
	}
}

// PutFile writes an object with the content of a file.
func (g *Gateway) PutFile(ctx context.Context, key, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = g.client.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(Bucket), Key: &key, Body: f})
	return err
}

// Remove removes an object.
func (g *Gateway) Remove(t testing.TB, key string) {
	t.Helper()
	if _, err := g.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(Bucket), Key: &key}); err != nil {
		t.Fatalf("removing %s: %v", key, err)
	}
}

// PutTree writes the files of a directory, in order of names, under prefix.
func (g *Gateway) PutTree(t testing.TB, prefix, dir string) {
	t.Helper()
	PutTree(t, g.Put, prefix, dir)
}

// PutTree writes the files of a directory, in order of names, under prefix of any server.
func PutTree(t testing.TB, put func(t testing.TB, key string, data []byte), prefix, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	expect.NoError(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		expect.NoError(t, err)
		put(t, prefix+"/"+e.Name(), b)
	}
}

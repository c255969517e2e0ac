//go:build integration

package s3

import (
	"path/filepath"
	"testing"

	"sequins/source/local"
	"sequins/source/s3"
	"sequins/test/expect"
	"sequins/test/gateway"
	"sequins/test/speed"
)

// BenchmarkLoad compares loads from S3 with loads from a disk. On loopback the server has its share of the
// processors.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	version := filepath.Join(dir, speed.DB, speed.Version)
	total := speed.Write(b, version, 4, 600_000)
	g := gateway.Start(b)
	g.PutTree(b, speed.DB+"/"+speed.Version, version)
	disk, err := local.New(dir)
	expect.NoError(b, err)
	bucket, err := s3.New(b.Context(), s3.Options{
		URL: "s3://" + gateway.Bucket, Region: gateway.Region, Endpoint: g.Endpoint(), PathStyle: true,
		AccessKeyID: gateway.AccessKey, SecretAccessKey: gateway.SecretKey,
	})
	expect.NoError(b, err)
	speed.Compare(b, disk, speed.Remote{Name: "s3", Source: bucket, CPU: g.CPU}, total)
}

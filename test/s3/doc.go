// Package s3 tests real processes of sequins whose source is in S3, on a real
// server of it. What nodes do with every object store is tested in test/clouds,
// and what source/s3 does on its own there.
package s3

// Package s3 tests real processes of sequins whose source is in S3, on a real
// server of it. What source/s3 does on its own is tested there.
package s3

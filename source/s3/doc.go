// Package s3 is the source in an S3 bucket or a compatible server: s3://<bucket>/<prefix>/<db>/<version>/<files>. It is the
// API of S3 for package objects, which owns everything else. Objects are identified by their ETags.
//
// # Credentials
//
// The access key comes from the options or from the SDK: environment, shared files and profiles, web identity, containers,
// instance roles. The same goes for the region and the endpoint. A refused request is fs.ErrPermission, and the error names
// the access key.
package s3

// Package gcs is the source in a bucket of Google Cloud Storage: gs://<bucket>/<prefix>/<db>/<version>/<files>. It is the JSON
// API of GCS for package objects, which owns everything else. Google's client library would bring gRPC and a hundred packages
// for the four requests that are needed; only tokens come from a library, golang.org/x/oauth2/google, and retries from the
// pipeline of Azure's SDK. The XML API, which resembles that of S3, has the generations too, but emulators answer it without
// conditions, pages and codes of errors.
//
// Objects are identified by their generations: a request for an object names the generation (ifGenerationMatch). Objects are
// read as they are stored (Accept-Encoding: gzip), because GCS would otherwise decompress them and ignore ranges.
//
// # Credentials
//
// Application default credentials: GOOGLE_APPLICATION_CREDENTIALS, those of gcloud, or the metadata server. Files can be keys of service accounts, of users, or describe workload identity federation and
// impersonation. With STORAGE_EMULATOR_HOST, requests are sent there without credentials.
package gcs

// Package objects is a source in an object store: <bucket>/<prefix>/<db>/<version>/<files>. It owns what such sources have in
// common; a Store is the API of one, which packages s3, gcs and azure implement. Common prefixes of keys up to a slash are
// its directories.
//
// # Listing and reading a version
//
// Listing uses prefix and delimiter, page by page (list.go). A prefix without keys does not exist, so that a mistyped one is
// an error rather than a source without databases. For a version with directories, all keys are listed, to find the data
// of MapFiles.
//
// An object <db>/<version>/_SYMLINK makes a version a link to another version of the same database, whose name is the
// object's text (link.go).
//
// A reader (reader.go) fetches its object in parts, several at a time, each with a request and goroutine of its own, and
// returns them in order. The read-ahead grows with what has been read, beginning with one small part, so that reading only
// the beginning of a file is cheap. All readers of a source share a memory budget. The object is identified by its id (an
// ETag or a generation), from the listing or the first answer; later requests are conditional. If the object is replaced
// meanwhile, the read fails (source.ErrChanged), so that two objects are never mixed. Requests of clients do not reach this
// package.
//
// If bandwidth is limited, a part is requested when the limiter has admitted all of it, so that servers never send more
// than the limit.
//
// # Faults
//
// A Store, or the SDK that it uses, repeats requests that fail temporarily, as often as Options.MaxRetries says and after growing
// random pauses. A stream that breaks continues at the same byte; only consecutive breaks
// without progress count (object.go). Checksums that stores send are not compared, as TLS has verified the bytes. Every
// connection has a deadline (conn.go): a request fails if the server is silent for too long. Everything ends with its context.
package objects

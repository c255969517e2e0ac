// Package s3 is the source that is a bucket of S3, or of a server that speaks
// its protocol: s3://<bucket>/<prefix>/<db>/<version>/<files>. Where other
// sources have directories, this one has what keys have in common up to a
// slash.
//
// # The way of a call
//
// Listing asks for keys by prefix and delimiter, page after page (list.go). A
// prefix under which there is no key at all does not exist, which makes a
// mistyped one an error rather than a place without databases. Of a version
// with directories in it, all keys are listed, to find the data of MapFiles.
//
// An object <db>/<version>/_SYMLINK makes a version stand for another one of
// the same database, the one that its text names (link.go).
//
// A reader (reader.go) asks for its object in parts, several at a time, each
// in a request and a goroutine of its own, and hands them out in order. How
// far it reads ahead grows with what has been read, from one small part on:
// whoever looks at the beginning of a file does not pay for the rest of it. All
// readers of a source share a budget of memory. The first answer says which
// object it is, by its ETag, or the listing has said so; the others are asked for
// with If-Match. An object that is replaced in the meantime is an error
// (source.ErrChanged): what was read of two objects is never mixed.
//
// Where the bandwidth is limited, a part is asked for when the limiter has let
// all of it through: what servers send is never more than what it allows.
//
// # Faults
//
// A request that fails in a way that may pass is made again, MaxRetries times,
// after pauses that grow and are never the same. A stream that breaks goes on
// at the byte that it broke at; only breaks without a byte in between count.
// Every connection has a deadline (conn.go): a server that says nothing for
// Options.Timeout is a failed request. Everything ends with its context.
//
// # Who asks
//
// The key pair of the options, or what the SDK finds: environment, shared
// files and profiles, web identity, containers, instance roles. The same goes
// for the region and the endpoint. What a server refuses is fs.ErrPermission,
// and the error names the access key that it refused.
package s3

// Package auth owns the tokens file: who may read which databases, and whose
// pages. It knows no HTTP but the value of one header.
//
// The file has a line for each token, with fields between spaces:
//
//	# name   token                        databases        may
//	web      sha256:9f86d081…0f00a08      users,products
//	batch    c2VxdWlucy1zZXF1aW5z         *
//	ops      sha256:60303ae2…a9a3b4e      *                pages
//	monitor  sha256:fd61a03a…58f9cc3      -                pages
//
// It is a list and no TOML because that is all it has to be: one line is added or
// deleted with any tool, and an error is about one line. A token is written as it
// is or, better, as its SHA-256: who reads the file then has no token. No salt is
// needed, as tokens are not for people to remember.
//
// Open reads the file into a table, Find looks up what a request presents in it,
// and Reload replaces it as a whole, or not at all. Nothing that this package
// returns holds a token, nor anything else of a line: a field may be a token that
// stands in the wrong place.
package auth

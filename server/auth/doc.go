// Package auth owns the tokens file: which databases each token may read, and
// whether it may see the pages. The only part of HTTP that it knows is the value
// of the Authorization header.
//
// Each line of the file is a token, with fields separated by spaces:
//
//	# name   token                        databases        may
//	web      sha256:9f86d081…0f00a08      users,products
//	batch    c2VxdWlucy1zZXF1aW5z         *
//	ops      sha256:60303ae2…a9a3b4e      *                pages
//	monitor  sha256:fd61a03a…58f9cc3      -                pages
//
// It is a list rather than TOML so that any tool can add or delete a line, and an
// error is about one line. A token is written in plain or, better, as its
// SHA-256, so that readers of the file learn no token. No salt is needed, as
// tokens are random.
//
// A request passes through Find, which looks its token up in a table. Open reads
// the file into that table, and Reload replaces it atomically. Nothing that this
// package returns contains a token or other parts of a line, as a field may be a
// misplaced token.
package auth

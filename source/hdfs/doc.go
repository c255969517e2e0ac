// Package hdfs is the source in a directory of a Hadoop file system:
// hdfs://<namenode or nameservice>/<path>/<db>/<version>/<files>.
//
// # Calls and reads
//
// For a version, listing and opening call a namenode. Each call uses a session of
// its own, which is one client of the library (github.com/colinmarc/hdfs), so
// that a namenode that hangs blocks only that call. The library supports neither
// deadlines nor contexts, so its connections do (conn.go): an exchange that takes
// longer than Options.Timeout fails, and everything ends with the call's context.
// A call with a temporary error is retried in a new session after a growing
// random pause, until Options.RetryFor has passed (retry.go). With two namenodes,
// the one that answered last is tried first. Requests of clients do not reach
// this package.
//
// A reader (reader.go) reads from datanodes when it is asked for bytes; the buffers of its connection are filled meanwhile. If a
// datanode fails, the library continues with another; if it cannot, the file is
// opened again at the current offset. If its id, length or modification time then
// differs from the listing, the read fails (source.ErrChanged), so that the
// content of two files is never mixed.
//
// Every byte is verified by its checksum. If the library is asked for more than
// one checksum's chunk at a time, it returns bytes that failed the check, or that
// a lost connection left unchecked; so it is asked for less (readSize).
//
// # Kerberos
//
// With a principal and a keytab, or with the credential cache of kinit, sessions
// authenticate by Kerberos. Tickets are requested before they are needed, and
// renewed (kerberos.go). What of Hadoop's protection and of its files is not
// supported gives an error that says so.
package hdfs

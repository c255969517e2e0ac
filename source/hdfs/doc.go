// Package hdfs is the source that is a directory of a Hadoop file system:
// hdfs://<namenode or nameservice>/<path>/<db>/<version>/<files>.
//
// # The way of a call
//
// Listing and opening ask a namenode. Each call makes a session, which is one
// client of the library (github.com/colinmarc/hdfs) that nobody else uses, and
// ends it: a namenode that hangs holds up that one call. The library knows
// neither deadlines nor contexts, so the connections that a session gives it
// do (conn.go): an exchange that takes longer than Options.Timeout ends with
// an error, and everything ends with the call's context. A call that fails in
// a way that may pass is made again, with a fresh session, after a pause that
// grows and is never the same, until Options.RetryFor is over (retry.go).
// With two namenodes, the one that answered last is asked first.
//
// A reader (reader.go) has a goroutine that reads ahead, from datanodes, into
// a handful of buffers. It starts with the first Read and ends with Close, or
// when the context does. The library goes on with another datanode where one
// fails; where it cannot, the file is opened again at the offset that was
// reached. A file that is then not the one that was listed, by its id, its
// length or its time of modification, is an error (source.ErrChanged): what was read
// of two files is never mixed.
//
// Every byte was checked against its checksum: the library's own reading of
// more than a checksum's chunk at a time passes on what failed the check, or
// what a broken connection left unchecked, so it is asked for less (readSize).
//
// # Kerberos and protection
//
// With a principal and a keytab, or with the credential cache of kinit,
// sessions authenticate by Kerberos, and calls to namenodes are signed or
// encrypted as these ask for (hadoop.rpc.protection). Tickets are got before
// they are needed and renewed (kerberos.go).
//
// Of dfs.data.transfer.protection, these work: authentication, and privacy
// where the datanodes have dfs.encrypt.data.transfer.cipher.suites set to
// AES/CTR/NoPadding; so does dfs.encrypt.data.transfer on the same condition.
// Integrity does not, nor does privacy with the older ciphers (3des, rc4).
//
// # What is not read
//
// Erasure-coded files, files in encryption zones, and what lies behind
// symbolic links, each of which is an error that says so. Of a configuration
// directory, core-site.xml and hdfs-site.xml are read, without ${variables}.
package hdfs

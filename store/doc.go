// Package store owns the directory in which a node keeps its data: the blocks of each content beside the content's
// manifest, what is known of each database ([State]), and the lock that one process at a time holds.
//
// [Open] takes the lock, and [Store.Sweep] removes what was left unfinished of a database. [Store.Create] makes the directory of a content, with its
// manifest. A load writes its blocks there through a [Staging], under temporary names, possibly in another process;
// [Dir.Publish] gives them their final names, under which they never change.
//
// store.go shows the layout of the directory, files.go the form of its files, and manifest.go and state.go what is in them.
package store

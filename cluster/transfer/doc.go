// Package transfer copies blocks between the nodes of a cluster. It owns both ends, and decides which partitions of a version this node
// copies and which it loads from the source (Run).
//
// The requests are for nodes only. Those that are about a content name the version in the parameter proxy, and the content in the header field
// wire.Content, which the answer repeats. GET /<db>?blocks asks for the manifest of a content. GET /<db>?block=N sends the file of a block,
// also of a content that is not advertised, such as one that a gate holds. GET /?proxy=serving asks for the contents that a node
// serves, of all dbs. Nodes of upstream's kind answer with another media type, which is the same as having nothing.
//
// A received block is written under a temporary name and hashed meanwhile. If the hash is the one in its footer, and it is a block of the partition, it is
// synced, and published by a rename. Nothing is read again but its index and a few pages (blocks.Reader.CheckCopy). The giver reads at a limited rate, gives a limited number of blocks at a time, and leaves the page cache as it is. Both ends break
// off a copy when the other one is too slow.
//
// Which node has a partition is in the reports that the nodes publish (package report): before a content is advertised, and while it is loaded. Of
// the nodes that have to hold a partition, one reads it from the source: the first member of an order that all nodes compute alike (readers). This
// node loads those of which it is the reader, and copies the others as soon as another node reports them. When its own load has ended, it waits for
// the other readers. Partitions of readers that have left, do not load, report nothing new for too long (times), or give no block pass to the next
// node of the order, and to this node in the end. So a version is never held up by another node, and at worst every node reads it from the source.
package transfer

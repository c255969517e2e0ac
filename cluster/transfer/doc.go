// Package transfer copies blocks between the nodes of a cluster. It owns both ends: Serve gives the blocks of this node,
// and Fetch takes one from another node.
//
// The requests are for nodes only. Those that are about a content name the version in the parameter proxy, and the content in the header field
// content.Header, which the answer repeats. GET /<db>?blocks asks for the manifest of a content. GET /<db>?block=N sends the file of a block, and what
// it was made from, also of a content that is not advertised, such as one that a gate holds. GET /?proxy=serving asks for the contents that a node
// serves, of all dbs.
//
// A block passes through Fetch: it is written under a temporary name, synced, verified as a whole, including that each key
// belongs to the partition, and published by a rename. So a node that sends anything else costs time and nothing more.
//
// The giver reads at a limited rate, for a limited number of nodes at a time, and leaves the page cache as it is. It
// breaks off a copy that the other node receives too slowly. Nodes of upstream's kind answer all requests with something that has
// another media type, which is the same as having nothing.
package transfer

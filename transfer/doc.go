// Package transfer copies blocks between the nodes of a cluster. It owns both ends: Serve gives the blocks of this node,
// and Fetch takes one from another node.
//
// Two requests exist, for nodes only. GET /<db>?blocks&proxy=VERSION asks what a node has of a version (State): the plan,
// the partitions that are here, and those that it is loading (Loading); with &manifest and &inputs also the plan itself, and what the
// blocks were made from. It covers versions that are not advertised
// yet, such as those that a gate has not let pass. GET /<db>?block=N&proxy=VERSION sends the file of a block, if the node has it with
// the plan that the request names.
//
// A block passes through Fetch: it is written under a temporary name, synced, verified as a whole, including that each key
// belongs to the partition, and published by a rename. So a node that sends anything else costs time and nothing more.
//
// The giver reads at a limited rate, for a limited number of nodes at a time, and leaves the page cache as it is. It
// breaks off a copy that the other node receives too slowly. Nodes of older releases answer both requests with something that has
// another media type, which is the same as having nothing.
package transfer

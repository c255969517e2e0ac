// Package wire has what both ends of the HTTP interface spell alike: header fields, media types, the frame of keys and values, the
// map from keys to nodes, and limits.
package wire

import (
	"encoding/binary"
	"io"
	"net/http"
)

// Header fields.
const (
	Version = "X-Sequins-Version"  // of an answer: where it is from; of a request: the only version that may answer it
	AtLeast = "X-Sequins-At-Least" // of a request: the oldest version that may answer it
	Secret  = "X-Sequins-Cluster"  // of a request of a node: the secret of the cluster
	// Content is the code of a content (see package content): of a request of a node, the content that it asks for, and of an answer to a
	// node, that which it is from. A node that does not hold the content does not answer from another one. Requests without it, such as
	// those of upstream's nodes, ask for any content of the version that they name.
	Content   = "X-Sequins-Content"
	ProxiedTo = "X-Sequins-Proxied-To" // of an answer to a client: the node that it is from
	ShardID   = "X-Sequins-Shard-ID"   // of the health of a node

	Traceparent = "Traceparent"
	Tracestate  = "Tracestate"
)

// Media types: of keys and values in frames, which is also the default one of values, of JSON, and of JSON in lines.
const (
	Bytes = "application/octet-stream"
	JSON  = "application/json"
	Lines = "application/x-ndjson"
)

const (
	// MaxKey is the maximum length of a key in bytes.
	MaxKey = 64 << 10
	// MaxHeader limits the header of an answer that a client reads, in bytes.
	MaxHeader = 64 << 10
)

// A frame is the length of a key or value, in big-endian order, and its bytes. Absent takes the place of the length of a
// value that does not exist, and in an ordered read, of the length of the key behind the last record.
const (
	LengthSize = 4
	Absent     = 1<<32 - 1
)

// AppendFrame appends the frame of a key or value.
func AppendFrame(b, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(data))), data...)
}

// CutFrame cuts the first frame off b. ok is false if b ends in it, as it does in Absent.
func CutFrame(b []byte) (data, rest []byte, ok bool) {
	if len(b) < LengthSize {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if b = b[LengthSize:]; uint64(n) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// ReadLength reads the length of a frame, or Absent.
func ReadLength(r io.Reader) (uint32, error) {
	var b [LengthSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(b[:]), nil
}

// Self stands for the address of the node that answers in Partitions.Nodes if that does not know it: the address that
// the client has used.
const Self = "self"

// Partitions is the map from keys to nodes for one version of a db: the partition of a key is
// Partitioner(key) mod Partitions, and Replicas are the nodes that hold it. It may be out of date when it
// arrives: a node forwards requests for partitions that it does not hold.
type Partitions struct {
	DB          string `json:"db"`
	Version     string `json:"version"`
	Partitioner string `json:"partitioner"` // a name of shard.Partitioner
	Partitions  int    `json:"partitions"`  // 0 for an empty version, in which every key is absent
	Scheme      string `json:"scheme"`      // of the URLs of the nodes: http or https
	// Nodes are the addresses (host:port) of the node that answers and of others that hold a partition, each once. The
	// first is the one that answers, or Self.
	Nodes []string `json:"nodes"`
	// Zones are the zones of the nodes, in their order, "" for one without; nil if no node has one.
	Zones []string `json:"zones,omitempty"`
	// Replicas are, for each partition, the indexes in Nodes of the nodes that hold it, ascending. It is empty
	// for partitions that no known node holds.
	Replicas [][]int `json:"replicas"`
}

// NoRedirects is the CheckRedirect of clients whose requests have secrets, or must go where they are configured to: it returns the
// redirect as the answer, because those who may name other servers are not those that answer.
func NoRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

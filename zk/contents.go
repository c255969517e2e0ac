package zk

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"sequins/internal/content"
)

// partitionData is the data of a partition's znode, as JSON:
//
//	{"contents":["0123456789abcdef.fedcba9876543210"]}
//
// It has the contents of the version of which the node serves the partition, as content.Content.Code spells them.
// Other fields are ignored. The original sequins writes no data: then the node serves any content.
type partitionData struct {
	Contents []string `json:"contents"`
}

// maxPartitionData bounds the size of the data of a partition's znode, in bytes.
const maxPartitionData = 4 << 10

// EncodeContents returns the data of the znode of a partition of which a node serves some contents of one version, in
// any order.
func EncodeContents(contents []content.Content) []byte {
	var d partitionData
	for _, c := range contents {
		d.Contents = append(d.Contents, c.Code())
	}
	slices.Sort(d.Contents)
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // cannot fail: it consists of strings
	}
	return data
}

// ParseContents parses the data of the znode of a partition. There are no contents if there is no data.
func ParseContents(version string, data []byte) ([]content.Content, error) {
	switch {
	case len(data) == 0:
		return nil, nil
	case len(data) > maxPartitionData:
		return nil, fmt.Errorf("%d bytes of data, more than the limit of %d", len(data), maxPartitionData)
	}
	var d partitionData
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if len(d.Contents) == 0 {
		return nil, errors.New("data without contents")
	}
	contents := make([]content.Content, len(d.Contents))
	for i, code := range d.Contents {
		c, err := content.Parse(version, code)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		contents[i] = c
	}
	return contents, nil
}

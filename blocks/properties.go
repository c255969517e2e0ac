package blocks

import "sequins/internal/knownjson"

// parseWritten decodes properties that look as encode writes them, in a third of the time that encoding/json takes: a
// start opens thousands of blocks. ok is false for all others.
func parseWritten(b []byte) (p Properties, ok bool) {
	r := knownjson.NewReader(b)
	p.Partition = int(r.Number(`{"partition":`))
	p.Partitions = int(r.Number(`,"partitions":`))
	p.Records = r.Number(`,"records":`)
	p.RawBytes = r.Number(`,"raw_bytes":`)
	p.Pages = int(r.Number(`,"pages":`))
	p.FirstKey = r.Base64(`,"first_key":`)
	p.LastKey = r.Base64(`,"last_key":`)
	p.Compression = string(r.Text(`,"compression":`))
	p.BlockSize = int(r.Number(`,"block_size":`))
	p.ContentHash = string(r.Text(`,"content_hash":`))
	p.MaxValue = r.Number(`,"max_value":`)
	if string(r.Rest) != "}" {
		p.MadeFrom = string(r.Text(`,"made_from":`))
	}
	return p, r.OK && string(r.Rest) == "}"
}

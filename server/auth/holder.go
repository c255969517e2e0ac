package auth

import (
	"crypto/sha256"
	"crypto/subtle"
)

// Holder is the holder of a token over a longer time, such as a connection. It does not contain the token. It is not safe
// for concurrent use.
type Holder struct {
	tokens *Tokens
	digest [sha256.Size]byte
	table  *table // in which grant was found
	grant  *Grant
}

// Hold returns the holder of a token, or nil if the token is not known. Its duration reveals what that of Find does.
func (t *Tokens) Hold(token []byte) *Holder {
	if len(token) == 0 || len(token) > MaxToken {
		return nil
	}
	h := &Holder{tokens: t, digest: sha256.Sum256(token)}
	if h.Grant() == nil {
		return nil
	}
	return h
}

// Grant returns the rights of the holder according to the current tokens file; nil if the token is no longer in it.
func (h *Holder) Grant() *Grant {
	if all := h.tokens.table.Load(); all != h.table {
		h.table, h.grant = all, all.find(&h.digest)
	}
	return h.grant
}

// find returns the grant for the digest of a token, or nil, in constant time.
func (t *table) find(digest *[sha256.Size]byte) *Grant {
	found := 0 // 1 + index
	for i := range t.digests {
		found |= (i + 1) * subtle.ConstantTimeCompare(digest[:], t.digests[i][:])
	}
	if found == 0 {
		return nil
	}
	return &t.grants[found-1]
}

package azure

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"sequins/source/objects"
)

// upload is a block blob whose blocks are sent. Its random number tells its blocks from those of others who write the same
// blob: blocks of an upload that are not in the committed list are removed.
type upload struct {
	*store
	blob   *blockblob.Client
	random [12]byte
	sent   []string // ids of blocks
}

// Upload begins an upload.
func (s *store) Upload(_ context.Context, key string, _ int64) (objects.Upload, error) {
	u := &upload{store: s, blob: s.client.NewBlockBlobClient(key)}
	_, _ = rand.Read(u.random[:]) // never fails
	return u, nil
}

// Part sends a block. The server compares what it received with a CRC-64.
func (u *upload) Part(ctx context.Context, data []byte) error {
	id := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(u.random[:], uint32(len(u.sent))))
	_, err := u.blob.StageBlock(ctx, id, readSeekCloser(data), &blockblob.StageBlockOptions{TransactionalValidation: blob.TransferValidationTypeComputeCRC64()})
	if err != nil {
		return u.explain(err)
	}
	u.sent = append(u.sent, id)
	return nil
}

// Complete makes a blob of the blocks.
func (u *upload) Complete(ctx context.Context, last []byte) error {
	if err := u.Part(ctx, last); err != nil {
		return err
	}
	_, err := u.blob.CommitBlockList(ctx, u.sent, nil)
	return u.explain(err)
}

// Abort does nothing: Azure removes blocks without a blob, and there is no request for it.
func (u *upload) Abort(context.Context) error { return nil }

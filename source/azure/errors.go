package azure

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"sequins/source"
	"sequins/source/objects"
)

// codes maps error codes to their meaning. A 404 without one of them is not from Azure.
var codes = map[string]error{
	"BlobNotFound":              fs.ErrNotExist,
	"ContainerNotFound":         fs.ErrNotExist,
	"ResourceNotFound":          fs.ErrNotExist,
	"PathNotFound":              fs.ErrNotExist,
	"FilesystemNotFound":        fs.ErrNotExist,
	"ConditionNotMet":           source.ErrChanged,
	"TargetConditionNotMet":     source.ErrChanged,
	"UnauthorizedBlobOverwrite": fs.ErrPermission,
}

// explain converts an error of the SDK into a short one with the server's message, and without secrets.
func (s *store) explain(err error) error { return s.redact(s.shorten(err)) }

func (s *store) shorten(err error) error {
	if _, noToken := errors.AsType[*azidentity.AuthenticationFailedError](err); noToken {
		return objects.Explain(fs.ErrPermission, "no token: "+objects.OneLine(err.Error()), s.asks)
	}
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return err
	}
	meaning, known := codes[answer.ErrorCode]
	if !known {
		meaning = objects.Meaning(answer.StatusCode)
	}
	return objects.Explain(meaning, describe(answer), s.asks)
}

// describe returns the code and the message of an answer.
func describe(e *azcore.ResponseError) string {
	said := fmt.Sprintf("%d %s", e.StatusCode, http.StatusText(e.StatusCode))
	if e.ErrorCode != "" {
		said = e.ErrorCode
	}
	var body struct {
		Message string `xml:"Message"`
	}
	if e.RawResponse == nil || e.RawResponse.Body == nil {
		return said
	}
	text, err := io.ReadAll(io.LimitReader(e.RawResponse.Body, 64<<10))
	if err != nil || xml.Unmarshal(text, &body) != nil || body.Message == "" {
		return said
	}
	first, _, _ := strings.Cut(body.Message, "\n") // the others are ids of the request
	return said + ": " + objects.OneLine(first)
}

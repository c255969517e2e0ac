package events

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Target is where events are sent.
type Target struct {
	// URL is an http or https URL. It may contain a password or a token, and is not logged.
	URL string
	// Secret signs the requests, see Sign. Without one they have no signature.
	Secret string
}

// SignatureHeader is the header of a request that has its signature.
const SignatureHeader = "X-Sequins-Signature"

// Sign returns the signature of a body that is sent at a time: t=<Unix time in seconds>,v1=<hex>. The second part is
// the HMAC-SHA256, with the secret as key, of the time as in the first part, a dot and the body. A receiver that
// checks the time refuses requests that somebody has recorded and sends again.
func Sign(secret string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

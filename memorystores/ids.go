package memorystores

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/settings"
)

// encoding is the encoding of ids: base32 with digits and lower-case letters.
var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// The prefixes of ids, by which clients distinguish their kinds.
const (
	memoryID  = "mem_"
	versionID = "memver_"
	requestID = "req_"
)

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return encoding.EncodeToString(b)
}

// newStoreID returns a random id of a memory store.
func newStoreID() string { return settings.StoreID + random(20) }

// memory is the number of a memory, from which the memory's id is made.
type memory [16]byte

// memoryOf returns the number of the memory that is stored as a note, given the note's id and its time of creation.
func memoryOf(noteID string, created time.Time) memory {
	h := sha256.New()
	h.Write([]byte(noteID))
	_ = binary.Write(h, binary.BigEndian, created.UnixMicro())
	return memory(h.Sum(nil)[:16])
}

func (m memory) String() string { return memoryID + encoding.EncodeToString(m[:]) }

func parseMemory(id string) (m memory, ok bool) {
	rest, ok := strings.CutPrefix(id, memoryID)
	b, err := encoding.DecodeString(rest)
	if !ok || err != nil || len(b) != len(m) {
		return m, false
	}
	m = memory(b)
	return m, m.String() == id
}

// versionString returns the id that the API uses for the version at a position of the log.
func versionString(lsn uint64) string {
	return versionID + encoding.EncodeToString(binary.BigEndian.AppendUint64(nil, lsn))
}

func parseVersion(id string) (lsn uint64, ok bool) {
	rest, ok := strings.CutPrefix(id, versionID)
	b, err := encoding.DecodeString(rest)
	if !ok || err != nil || len(b) != 8 {
		return 0, false
	}
	lsn = binary.BigEndian.Uint64(b)
	return lsn, versionString(lsn) == id
}

// page returns a page token. kind names the listing. place is the place in the listing after which the next page
// begins, as the listing itself encodes it.
func page(kind byte, place string) *string {
	s := "page_" + base64.RawURLEncoding.EncodeToString(append([]byte{kind}, place...))
	return &s
}

func parsePage(kind byte, token string) (place string, ok bool) {
	rest, ok := strings.CutPrefix(token, "page_")
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if !ok || err != nil || len(b) < 2 || b[0] != kind {
		return "", false
	}
	return string(b[1:]), true
}

// number returns a number, such as a time, in the decimal form that page tokens have.
func number(n int64) string { return strconv.FormatInt(n, 10) }

package index

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/jsondoc"
)

// Entry is a parsed line of the index.
type Entry struct {
	Filepath    string // path of the document's file relative to the store, with slashes
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Score       float64  // quickrecal_score; memories only
	MemberCount int64    // assemblies only
	ContentHash [32]byte // sha256 of the file's exact bytes
	Size        int64    // size of the file in bytes
	// Modification time of the file, in microseconds since 1970; 0 before the line enters a table.
	Mtime     int64
	Version   uint64 // LSN of the frame that wrote the version; 0 before the line enters a table
	By        uint32 // number of the version's writer (package writer); 0 if unknown
	Dimension int    // dimension of the vector, 0: no vector; UnknownDimension in lines older than vectors
	VectorID  int64  // FAISS id of the vector, 0 if equal to Version; see Vector
	SessionID string // session of a memory; "" for none
	ExpiresAt time.Time
	Deleted   bool // the line is a tombstone, which has only a Version
}

// UnknownDimension is the value in an Entry for the vector's dimension if the index line does not record it: then
// only the document shows whether there is a vector.
const UnknownDimension = -1

// Vector returns the FAISS id of the document's vector, from a complete index line: the LSN of the write that brought
// the vector, or the id that an import has set. It returns 0 if the document has no vector, or if the line does not
// record whether there is one.
func (e *Entry) Vector() int64 {
	switch {
	case e.Deleted || e.Dimension <= 0:
		return 0
	case e.VectorID != 0:
		return e.VectorID
	}
	return int64(e.Version)
}

// VectorNumber returns the FAISS id that the document's vector has or would have, even if the document has no vector.
// This is VectorID if that is set, and otherwise Version. Only the LSN of a frame, which is a multiple of 8, belongs
// to one document; any other Version can be the same for many documents. VectorNumber then makes the id from the
// content hash; see StrayVector.
func (e *Entry) VectorNumber() int64 {
	switch {
	case e.VectorID != 0:
		return e.VectorID
	case e.Version%8 != 0:
		return StrayVector(e.ContentHash)
	}
	return int64(e.Version)
}

// StrayVector returns the FAISS id of the vector of a document whose version is no longer known. The id is
// above every LSN, and equal for documents with equal bytes.
func StrayVector(sum [32]byte) int64 {
	return 1<<62 | int64(binary.LittleEndian.Uint64(sum[:])>>2)
}

// Agrees reports whether two index lines of the same version of a document have the same values. A value that
// is unknown in one line agrees with any value in the other.
func (e Entry) Agrees(o Entry) bool {
	if e.Dimension == UnknownDimension || o.Dimension == UnknownDimension {
		e.Dimension, e.VectorID = o.Dimension, o.VectorID
	}
	if e.By == 0 || o.By == 0 {
		e.By = o.By
	}
	return e == o
}

var (
	errNotFinite = errors.New("JSON cannot represent NaN or infinity")
	errNotUTF8   = errors.New("not valid UTF-8")
	errYear      = errors.New("RFC 3339 cannot represent years outside 0 to 9999")
)

// AppendMemory appends the index line of a memory. If Version is 0, it writes neither mtime nor version, as in
// the record of a log entry.
func (e *Entry) AppendMemory(dst []byte) ([]byte, error) {
	if math.IsNaN(e.Score) || math.IsInf(e.Score, 0) {
		return dst, &errs.FieldError{Field: "quickrecal_score", Err: errNotFinite}
	}
	if err := e.check(); err != nil {
		return dst, err
	}
	dst = e.appendHead(dst)
	dst = append(dst, `,"quickrecal_score":`...)
	dst = appendFloat(dst, e.Score)
	dst = e.appendFile(dst)
	if e.SessionID != "" {
		dst = append(dst, `,"session_id":"`...)
		dst = jsondoc.AppendEscaped(dst, e.SessionID)
		dst = append(dst, '"')
	}
	if !e.ExpiresAt.IsZero() {
		dst = append(dst, `,"expires_at":"`...)
		dst = appendTime(dst, e.ExpiresAt)
		dst = append(dst, '"')
	}
	return append(dst, '}'), nil
}

// AppendAssembly appends the index line of an assembly. If Version is 0, it writes neither mtime nor version.
func (e *Entry) AppendAssembly(dst []byte) ([]byte, error) {
	if err := e.check(); err != nil {
		return dst, err
	}
	dst = e.appendHead(dst)
	dst = append(dst, `,"member_count":`...)
	dst = strconv.AppendInt(dst, e.MemberCount, 10)
	return append(e.appendFile(dst), '}'), nil
}

// AppendTombstone appends the index line that records that the document was deleted, as the given version.
func AppendTombstone(dst []byte, version uint64) []byte {
	dst = append(dst, tombstoneHead...)
	dst = strconv.AppendUint(dst, version, 10)
	return append(dst, '}')
}

func (e *Entry) check() error {
	for _, s := range []struct{ name, value string }{{"filepath", e.Filepath}, {"session_id", e.SessionID}} {
		if !utf8.ValidString(s.value) {
			return &errs.FieldError{Field: s.name, Value: human.Quote(s.value), Err: errNotUTF8}
		}
	}
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"created_at", e.CreatedAt}, {"updated_at", e.UpdatedAt}, {"expires_at", e.ExpiresAt}} {
		if y := t.at.UTC().Year(); y < 0 || y > 9999 {
			return &errs.FieldError{Field: t.name, Value: t.at.String(), Err: errYear}
		}
	}
	return nil
}

func (e *Entry) appendHead(dst []byte) []byte {
	dst = append(dst, `{"filepath":"`...)
	dst = jsondoc.AppendEscaped(dst, e.Filepath)
	dst = append(dst, `","created_at":"`...)
	dst = appendTime(dst, e.CreatedAt)
	dst = append(dst, `","updated_at":"`...)
	dst = appendTime(dst, e.UpdatedAt)
	return append(dst, '"')
}

func (e *Entry) appendFile(dst []byte) []byte {
	dst = append(dst, `,"content_hash":"sha256:`...)
	dst = hex.AppendEncode(dst, e.ContentHash[:])
	dst = append(dst, `","size":`...)
	dst = strconv.AppendInt(dst, e.Size, 10)
	if e.Version != 0 {
		dst = appendStamp(dst, e.Version, e.Mtime, e.By)
	}
	if e.Dimension != UnknownDimension {
		dst = append(dst, dimensionMember...)
		dst = strconv.AppendInt(dst, int64(e.Dimension), 10)
	}
	if e.VectorID != 0 {
		dst = append(dst, vectorMember...)
		dst = strconv.AppendInt(dst, e.VectorID, 10)
	}
	return dst
}

func appendStamp(dst []byte, version uint64, mtime int64, writer uint32) []byte {
	dst = append(dst, `,"mtime":`...)
	dst = strconv.AppendInt(dst, mtime, 10)
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendUint(dst, version, 10)
	if writer != 0 {
		dst = append(dst, byMember...)
		dst = strconv.AppendUint(dst, uint64(writer), 10)
	}
	return dst
}

// appendTime appends a time with six digits after the second, or with nine if the time has nanoseconds.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	if t.Nanosecond()%1000 != 0 {
		return t.AppendFormat(dst, nanoForm)
	}
	return t.AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
}

// nanoForm is a time format of fixed width, in which the texts of times sort like the times.
const nanoForm = "2006-01-02T15:04:05.000000000Z"

// appendFloat appends a number as RFC 8785 and ECMAScript write it.
func appendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0') // also for -0
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	n := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go writes at least two digits of the exponent, ECMAScript as few as needed.
	if k := len(dst); k-n >= 4 && dst[k-2] == '0' && (dst[k-3] == '-' || dst[k-3] == '+') {
		dst[k-2] = dst[k-1]
		dst = dst[:k-1]
	}
	return dst
}

package assembly

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/record"
)

// Line returns the index line of a in the form in which the log stores it; see the package comment. doc is the
// document of a. vectorID is the number of the composite in the vector file. If vectorID is 0, the line has no
// vector_id: the number is then the position of the line's frame in the log.
func (a *Assembly) Line(doc []byte, vectorID int64) ([]byte, error) {
	sum := sha256.Sum256(doc)
	dst := make([]byte, 0, 420+2*len(a.Name)+40*len(a.MemoryIDs))
	dst = append(dst, `{"filepath":"`+record.AssemblyFolder+`/`...)
	dst = append(dst, jsondoc.FileName(a.ID)...) // lower-case ASCII, nothing to escape
	dst = append(dst, `","created_at":`...)
	dst = jsondoc.AppendTime(dst, a.CreatedAt.Truncate(time.Microsecond))
	dst = append(dst, `,"updated_at":`...)
	dst = jsondoc.AppendTime(dst, a.UpdatedAt)
	dst = append(dst, `,"member_count":`...)
	dst = strconv.AppendInt(dst, int64(len(a.MemoryIDs)), 10)
	dst = append(dst, `,"content_hash":"sha256:`...)
	dst = hex.AppendEncode(dst, sum[:])
	dst = append(dst, `","size":`...)
	dst = strconv.AppendInt(dst, int64(len(doc)), 10)
	dst = append(dst, `,"dimension":`...)
	dst = strconv.AppendInt(dst, int64(len(a.CompositeEmbedding)), 10)
	if vectorID > 0 {
		dst = append(dst, `,"vector_id":`...)
		dst = strconv.AppendInt(dst, vectorID, 10)
	}
	var err error
	if a.Name != "" {
		dst = append(dst, `,"name":`...)
		if dst, err = jsondoc.AppendString(dst, a.Name); err != nil {
			return nil, jsondoc.InField(memberName, err)
		}
	}
	if a.Inactive {
		dst = append(dst, `,"is_active":false`...)
	}
	dst = append(dst, membersOpen...)
	for i, id := range a.MemoryIDs {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = jsondoc.AppendString(dst, id); err != nil {
			return nil, jsondoc.InField(fmt.Sprintf("%s[%d]", memberMemoryIDs, i), err)
		}
	}
	return append(dst, ']', '}'), nil
}

var membersOpen = []byte(`,"members":[`)

var errLine = errors.New("the line of the index does not describe an assembly")

// MembersOf returns the ids of the members in an index line of the log, without decoding the rest of the line. It
// searches for the bytes ,"members":[ which can only begin the JSON member members: inside a JSON string every quote
// has a backslash before it. If the line has no such JSON member, MembersOf returns nil. Errors match errs.ErrCorrupt.
func MembersOf(line []byte) ([]string, error) {
	at := bytes.Index(line, membersOpen)
	if at < 0 {
		return nil, nil
	}
	rest := line[at+len(membersOpen)-1:]
	if !bytes.HasSuffix(rest, []byte("]}")) {
		return nil, lineError(line, errors.New("\"members\" is not the last JSON member of the index line"))
	}
	ids, err := jsondoc.DecodeStrings(rest[:len(rest)-1])
	if err != nil {
		return nil, lineError(line, err)
	}
	return ids, nil
}

func lineError(line []byte, err error) error {
	return fmt.Errorf("%w: %w: %.60q: %w", errs.ErrCorrupt, errLine, line, err)
}

package memstore

import (
	"bytes"
	"time"

	"github.com/varve-db/varve/internal/jsondoc"
)

// DecodeOptions are the options of Decode; the zero value is suitable for a file of the store.
type DecodeOptions struct {
	Limits     Limits
	Location   *time.Location // zone of times that have none; nil: UTC
	ID         string         // the id that the document must have; "": any id
	IDOptional bool           // accept a document without an id: the memory gets one when it is stored
	Owned      bool           // data belongs to the Memory afterwards, so Decode need not copy it
}

// Decode reads one memory in any of the forms that the package comment lists. The result does not share memory with
// data, unless opts.Owned is set.
//
// If the text is not JSON, the error is a *jsondoc.SyntaxError with the offset. If a member cannot be read, the error
// is a *errs.FieldError. Both match errs.ErrInvalid.
func Decode(data []byte, opts DecodeOptions) (*Memory, error) {
	lim := opts.Limits.Resolved()
	if err := lim.checkSize(len(data)); err != nil {
		return nil, err
	}
	if !opts.Owned {
		data = bytes.Clone(data)
	}
	source, err := parse(data, lim)
	if err != nil {
		return nil, err
	}
	m := &Memory{source: source}
	for _, member := range source.Members() {
		if err := m.decodeMember(member.Name, member.Value, lim, opts.Location); err != nil {
			return nil, jsondoc.InField(member.Name, err)
		}
	}
	if err := jsondoc.CheckDocumentID(memberID, m.ID, opts.ID, opts.IDOptional, lim.IDBytes); err != nil {
		return nil, err
	}
	return m, nil
}

// parse parses a document. If a member has a name that an older system used, parse stores it under the current name.
func parse(data []byte, lim Limits) (*jsondoc.Object, error) {
	o, err := jsondoc.Parse(data, lim.Depth)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{memberEmbedding, memberHyperbolic} {
		o.ListPrinted(name)
	}
	older := false
	for _, name := range olderNames() {
		older = o.Rename(name[0], name[1]) || older
	}
	if older {
		o.Arrange(memberOrder())
	}
	return o, nil
}

func (m *Memory) decodeMember(name string, raw []byte, lim Limits, loc *time.Location) (err error) {
	switch name {
	case memberID:
		m.ID, err = jsondoc.DecodeText(raw)
	case memberContent:
		m.Content, err = jsondoc.DecodeText(raw)
	case memberEmbedding:
		m.Embedding, err = jsondoc.DecodeFloats(raw, lim.EmbeddingDim)
	case memberTimestamp:
		m.Timestamp, err = jsondoc.DecodeTime(raw, loc)
	case memberScore:
		m.QuickRecalScore, err = jsondoc.DecodeFloat(raw)
	case memberScoreUpdated:
		m.QuickRecalUpdated, err = jsondoc.DecodeTime(raw, loc)
	case memberMetadata:
		m.Metadata, err = jsondoc.DecodeMap(raw)
	case memberAccessCount:
		m.AccessCount, err = jsondoc.DecodeCount(raw)
	case memberLastAccess:
		m.LastAccessTime, err = jsondoc.DecodeTime(raw, loc)
	case memberHyperbolic:
		m.HyperbolicEmbedding, err = jsondoc.DecodeFloats(raw, lim.EmbeddingDim)
	case memberCreatedAt:
		m.CreatedAt, err = jsondoc.DecodeTime(raw, loc)
	case memberUpdatedAt:
		m.UpdatedAt, err = jsondoc.DecodeTime(raw, loc)
	case memberExpiresAt:
		m.ExpiresAt, err = jsondoc.DecodeTime(raw, loc)
	}
	return err
}

// UnmarshalJSON decodes a document into m as Decode does with default options, except that the id may be missing. It
// does not change Version and By.
func (m *Memory) UnmarshalJSON(data []byte) error {
	d, err := Decode(data, DecodeOptions{IDOptional: true})
	if err != nil {
		return err
	}
	d.Version, d.By = m.Version, m.By
	*m = *d
	return nil
}

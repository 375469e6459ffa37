package assembly

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
	IDOptional bool           // accept a document without an id: the assembly gets one when it is stored
	Owned      bool           // data belongs to the Assembly afterwards, so Decode need not copy it
}

// Decode reads one assembly in any of the forms that the package comment lists. The result shares no memory with data,
// unless opts.Owned is set.
//
// If the text is not JSON, the error is a *jsondoc.SyntaxError with the offset. If a member cannot be read, the error
// is a *errs.FieldError. Both errors match errs.ErrInvalid.
func Decode(data []byte, opts DecodeOptions) (*Assembly, error) {
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
	a := &Assembly{source: source}
	for _, member := range source.Members() {
		if err := a.decodeMember(member.Name, member.Value, lim, opts.Location); err != nil {
			return nil, jsondoc.InField(member.Name, err)
		}
	}
	if err := jsondoc.CheckDocumentID(memberID, a.ID, opts.ID, opts.IDOptional, lim.IDBytes); err != nil {
		return nil, err
	}
	a.MemoryIDs = united(a.MemoryIDs)
	if err := a.checkLists(lim); err != nil {
		return nil, err
	}
	return a, nil
}

// parse parses a document, and renames each member that has the name of an older system to its current name.
func parse(data []byte, lim Limits) (*jsondoc.Object, error) {
	o, err := jsondoc.Parse(data, lim.Depth)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{memberComposite, memberHyperbolic} {
		o.ListPrinted(name)
	}
	older := false
	for _, name := range olderNames() {
		if name[0] == olderID && isMemory(o) {
			continue
		}
		older = o.Rename(name[0], name[1]) || older
	}
	copies, err := takeCopies(o)
	if err != nil {
		return nil, err
	}
	if older || copies {
		o.Arrange(memberOrder())
	}
	return o, nil
}

// checkLists returns an error if MemoryIDs or MergedFrom is too long or has an invalid id.
func (a *Assembly) checkLists(lim Limits) error {
	if err := lim.checkIDs(memberMemoryIDs, a.MemoryIDs); err != nil {
		return err
	}
	return lim.checkIDs(memberMergedFrom, a.MergedFrom)
}

func (a *Assembly) decodeMember(name string, raw []byte, lim Limits, loc *time.Location) (err error) {
	for _, t := range a.times() {
		if t.name == name {
			*t.value, err = jsondoc.DecodeTime(raw, loc)
			return err
		}
	}
	for _, l := range a.lists() {
		if l.name == name {
			*l.value, err = jsondoc.DecodeStrings(raw)
			return err
		}
	}
	switch name {
	case memberID:
		a.ID, err = jsondoc.DecodeText(raw)
	case memberName:
		a.Name, err = jsondoc.DecodeText(raw)
	case memberDescription:
		a.Description, err = jsondoc.DecodeText(raw)
	case memberComposite:
		a.CompositeEmbedding, err = jsondoc.DecodeFloats(raw, lim.EmbeddingDim)
	case memberHyperbolic:
		a.HyperbolicEmbedding, err = jsondoc.DecodeFloats(raw, lim.EmbeddingDim)
	case memberEmotion:
		a.EmotionProfile, err = jsondoc.DecodeMap(raw)
	case memberAccessCount:
		a.AccessCount, err = jsondoc.DecodeCount(raw)
	case memberLevel:
		a.ActivationLevel, err = jsondoc.DecodeFloat(raw)
	case memberActivationCount:
		a.ActivationCount, err = jsondoc.DecodeCount(raw)
	case memberActive:
		a.Inactive, err = decodeInactive(raw)
	case memberSchema:
		a.SchemaVersion, err = decodeSchema(raw)
	}
	return err
}

func decodeInactive(raw []byte) (bool, error) {
	if raw[0] == 'n' {
		return false, nil
	}
	active, err := jsondoc.DecodeBool(raw)
	return err == nil && !active, err
}

// decodeSchema decodes the member assembly_schema_version: a string, or a number, which is returned as text.
func decodeSchema(raw []byte) (string, error) {
	if raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9' {
		return string(raw), nil
	}
	return jsondoc.DecodeText(raw)
}

// UnmarshalJSON decodes data into a, as Decode does with default options; the id may be missing. It does not change
// Version and By.
func (a *Assembly) UnmarshalJSON(data []byte) error {
	d, err := Decode(data, DecodeOptions{IDOptional: true})
	if err != nil {
		return err
	}
	d.Version, d.By = a.Version, a.By
	*a = *d
	return nil
}

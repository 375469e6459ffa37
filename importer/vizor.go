package importer

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// vizor reads session files, one after the other, each as a stream.
func (r *run) vizor() error {
	names, folders := []string{r.only}, []string(nil)
	if r.only == "" {
		var err error
		if names, folders, err = r.list("."); err != nil {
			return err
		}
	}
	for _, name := range names {
		err := error(nil)
		if r.only != "" || path.Ext(name) == ".json" {
			err = r.session(name)
		} else {
			err = r.problem(Problem{Path: name, Kind: KindNotMemory, Reason: "not a session file"})
		}
		if err != nil {
			return err
		}
	}
	for _, name := range folders {
		if strings.HasPrefix(name, ".") {
			continue
		}
		if err := r.problem(Problem{Path: name, Kind: KindNotMemory,
			Reason: "a folder: its files were not read"}); err != nil {
			return err
		}
	}
	return nil
}

// session yields a file's records. The file is read twice, because the session's id may follow the
// records. The readable records of a damaged file are yielded, and the damage is reported.
func (r *run) session(name string) error {
	session, memories := "", false
	// The second reading reports damage.
	_, _ = r.eachOf(name, func(dec *jsontext.Decoder, member string) error {
		if member == "memories" {
			memories = dec.PeekKind() == '{'
		}
		if member != "session_id" || dec.PeekKind() != '"' {
			return dec.SkipValue()
		}
		val, err := dec.ReadValue()
		session = unquote(val)
		return err
	})
	note := ""
	if session == "" {
		session, note = strings.TrimSuffix(path.Base(name), ".json"), "the session id is from the file name"
	}
	bare, err := r.eachOf(name, func(dec *jsontext.Decoder, member string) error {
		if member != "memories" || dec.PeekKind() != '{' {
			return dec.SkipValue()
		}
		return eachMember(dec, func(category string) error {
			return r.category(dec, name, session, category, note)
		})
	})
	switch {
	case errors.Is(err, errStop) || r.ctx.Err() != nil:
		return err
	case isSyntax(err):
		return r.problem(Problem{Path: name, Kind: KindCorrupt,
			Reason: fmt.Sprintf("%v; the records before that were imported", clip(err))})
	case err != nil:
		return r.problem(Problem{Path: name, Kind: KindUnread, Reason: err.Error()})
	case !memories:
		return r.problem(Problem{Path: name, Kind: KindNotMemory,
			Reason: `not a session file: the object "memories" is missing`})
	case bare > 0:
		return r.problem(Problem{Path: name, Kind: KindMended, Reason: "NaN or Infinity, which are not JSON, became null",
			Taken: true})
	}
	return nil
}

// isSyntax reports whether err means invalid text, and not a file that cannot be read.
func isSyntax(err error) bool {
	var bad *jsontext.SyntacticError
	return errors.As(err, &bad) || errors.Is(err, errNoObject) || errors.Is(err, io.ErrUnexpectedEOF)
}

// eachOf calls f for each member at the top level of a session file. bare is the number of NaN and infinite numbers in
// the whole file.
func (r *run) eachOf(name string, f func(dec *jsontext.Decoder, member string) error) (bare int, err error) {
	file, err := r.open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	in := newFiniteReader(file)
	dec := jsontext.NewDecoder(in, lax...)
	if err := eachMember(dec, func(member string) error { return f(dec, member) }); err != nil {
		return in.found, err
	}
	_, err = dec.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return in.found, nil
	case err == nil:
		err = fmt.Errorf("%w: more data follows at byte %d", errNoObject, dec.InputOffset())
	}
	return in.found, err
}

func (r *run) category(dec *jsontext.Decoder, name, session, category, note string) error {
	if dec.PeekKind() != '{' {
		if err := r.problem(Problem{Path: name, Kind: KindNotMemory,
			Reason: fmt.Sprintf("category %q has no records", category), LeftOut: true}); err != nil {
			return err
		}
		return dec.SkipValue()
	}
	return eachMember(dec, func(key string) error {
		val, err := dec.ReadValue()
		if err != nil {
			return err
		}
		return r.record(name, session, category, key, note, val)
	})
}

// record yields a record as a memory.
func (r *run) record(name, session, category, key, note string, val jsontext.Value) error {
	rec, err := r.readRecord(category, val)
	if err != nil {
		return err
	}
	id := vizorID(session, category, key)
	at := Problem{Path: name, ID: id}
	if rec.content == nil {
		at.Kind, at.Reason, at.LeftOut = KindNotMemory,
			fmt.Sprintf("category %q, key %q: the record has no value", category, key), true
		return r.problem(at)
	}
	if len(val) > r.opts.MaxBytes {
		at.Kind, at.Reason = KindTooLarge, fmt.Sprintf("category %q, key %q: more than %d bytes", category, key,
			r.opts.MaxBytes)
		return r.problem(at)
	}
	body := rec.body(session, category, key)
	if was, ok := r.seen[id]; ok && was.sum != sum(body) {
		// Two files of one session have different values: both are kept.
		at.Kind, at.Taken = KindDuplicate, true
		at.Reason = fmt.Sprintf("category %q, key %q has another value in %s; this record was imported under its "+
			"own id", category, key,
			was.path)
		id = vizorID(session, category, key, string(body))
		if _, ok := r.seen[id]; !ok {
			if err := r.problem(at); err != nil {
				return err
			}
		}
	}
	out := member([]byte{'{'}, "id", quote(id))
	out = append(append(out, ','), body[1:]...)
	taken, err := r.item(Item{ID: id, JSON: out, Path: name, Note: note}, body)
	if err != nil || !taken || rec.odd == "" {
		return err
	}
	at.ID, at.Kind, at.Reason, at.Taken = id, KindMended, fmt.Sprintf("category %q, key %q: %s", category, key, rec.odd),
		true
	return r.problem(at)
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/memstore"
)

// slurp reads a file, or stdin for -, up to a limit.
func (a *app) slurp(ctx context.Context, name string, limit int) ([]byte, error) {
	b, err := readAll(ctx, func() ([]byte, error) {
		r, err := a.source(name)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return io.ReadAll(io.LimitReader(r, int64(limit)+1))
	})
	if err != nil {
		return nil, fmt.Errorf("reading the input %s: %w", name, err)
	}
	if len(b) > limit {
		return nil, &varve.FieldError{Field: "input " + name, Value: fmt.Sprintf("of more than %d bytes", limit),
			Limit: fmt.Sprintf("%d bytes", limit), Err: varve.ErrTooLarge}
	}
	return b, nil
}

func (a *app) source(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.in), nil
	}
	return os.Open(name)
}

// putInput stores whole memories. All are read before any is written.
func (a *app) putInput(ctx context.Context, st *varve.Store, name string, conds []varve.Cond) error {
	var all []varve.Memory
	_, err := readAll(ctx, func() ([]byte, error) {
		r, err := a.source(name)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		all, err = decodeAll(r, limitsOf(st.Config()), a.clockID)
		return nil, err
	})
	if err != nil {
		return fmt.Errorf("input %s: %w", name, err)
	}
	if len(all) == 1 {
		m, err := st.Put(ctx, all[0], conds...)
		if err == nil {
			a.put(&m)
		}
		return err
	}
	n, err := putTogether(ctx, st, all, conds)
	a.document.begin("memories")
	for _, m := range all[:n] {
		if a.document != nil {
			a.document.item(stored{ID: m.ID})
		} else {
			fmt.Fprintln(a.out, printableID(m.ID))
		}
	}
	if err != nil && n > 0 {
		err = &fixed{fmt.Errorf("the first %d of %d are stored: %w", n, len(all), err), "correct the input and put the rest"}
	}
	return err
}

func (a *app) clockID() (string, error) { return memstore.NewID(a.clock(), nil) }

// putTogether writes one commit, or several when one cannot hold them.
func putTogether(ctx context.Context, st *varve.Store, all []varve.Memory, conds []varve.Cond) (int, error) {
	b := st.NewBatch()
	for _, m := range all {
		b.Put(m, conds...)
	}
	switch err := st.Apply(ctx, b); {
	case err == nil:
		return len(all), nil
	case !errors.Is(err, varve.ErrBatchTooLarge):
		return 0, err
	}
	n, err := st.PutAll(ctx, slices.Values(all), conds...)
	return int(n), err
}

// decodeAll reads one memory, an array of them, or one after another. Those
// without an id get one.
func decodeAll(r io.Reader, limits memstore.Limits, newID func() (string, error)) ([]varve.Memory, error) {
	return decodeEach(r, "memory", func(raw []byte) (m varve.Memory, err error) {
		d, err := memstore.Decode(raw, memstore.DecodeOptions{Limits: limits, IDOptional: true})
		switch {
		case err != nil:
			return m, err
		case d.ID == "" && hasID(raw, "id"):
			return m, noID("id", limits.IDBytes)
		case d.ID == "":
			d.ID, err = newID()
		}
		return *d, err
	})
}

// decodeEach reads one object, an array of objects, or objects one after another.
func decodeEach[T any](r io.Reader, what string, decode func(raw []byte) (T, error)) ([]T, error) {
	var all []T
	for raw, err := range values(r) {
		nth := fmt.Sprintf("%s %d", what, len(all)+1)
		if err != nil {
			return nil, invalid(nth, err)
		}
		v, err := decode(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", nth, err)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: there is no %s in it", varve.ErrInvalid, what)
	}
	return all, nil
}

func noID(field string, limit int) error {
	return &varve.FieldError{Field: field, Value: `""`, Limit: fmt.Sprintf("1 to %d bytes", limit), Err: errors.New("an id must not be empty")}
}

// hasID: an id that is null counts as none, one that is empty does not.
func hasID(raw []byte, name string) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return false
	}
	id, ok := m[name]
	return ok && string(id) != "null"
}

// values yields the elements of an array, or the values of a stream.
func values(r io.Reader) func(func(json.RawMessage, error) bool) {
	return func(yield func(json.RawMessage, error) bool) {
		br := bufio.NewReader(r)
		if mark, err := br.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
			_, _ = br.Discard(3)
		}
		d := json.NewDecoder(br)
		array := false
		if first, err := firstByte(br); err == nil && first == '[' {
			array = true
			if _, err := d.Token(); err != nil {
				yield(nil, err)
				return
			}
		}
		for !array || d.More() {
			var raw json.RawMessage
			err := d.Decode(&raw)
			if errors.Is(err, io.EOF) && !array {
				return
			}
			if !yield(raw, err) || err != nil {
				return
			}
		}
		if _, err := d.Token(); err != nil {
			yield(nil, err)
			return
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			yield(nil, errors.New("something follows the array"))
		}
	}
}

// firstByte looks at the first byte that is no white space.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return b, r.UnreadByte()
		}
	}
}

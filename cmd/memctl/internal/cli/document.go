package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"sync"
)

// Document is the one JSON object that --json prints on stdout. Each member is written as soon as it is known. So a
// list of a million items needs no memory, and the last member can be the error that ended the list.
//
// Without --json the *Document is nil, and its methods do nothing.
//
// Several goroutines may use a Document: one goroutine may end it while another is still adding to it.
type Document struct {
	mu      sync.Mutex
	closed  bool // later output is discarded
	w       *bufio.Writer
	members int
	items   int
	list    bool
	Lines   bool // print one object per line: a failure is the last line
	err     error
}

func newDocument(w io.Writer) *Document { return &Document{w: bufio.NewWriterSize(w, 64<<10)} }

func (d *Document) print(b []byte) {
	if d.closed {
		return
	}
	if _, err := d.w.Write(b); d.err == nil {
		d.err = err
	}
}

func (d *Document) name(name string) {
	d.endList()
	open := []byte("{")
	if d.members > 0 {
		open = []byte(",")
	}
	d.members++
	d.print(open)
	b, err := encode(name)
	d.note(err)
	d.print(b)
	d.print([]byte(":"))
}

// Member writes one member of the JSON object: its name and its value.
func (d *Document) Member(name string, v any) {
	if d == nil {
		return
	}
	b, err := encode(v)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(err)
	d.name(name)
	d.print(b)
}

// All writes each field of a struct as one member of the JSON object.
func (d *Document) All(v any) {
	if d == nil {
		return
	}
	b, err := encode(v)
	b = bytes.TrimSuffix(bytes.TrimPrefix(b, []byte("{")), []byte("}"))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(err)
	if len(b) == 0 {
		return
	}
	d.endList()
	if d.members > 0 {
		d.print([]byte(","))
	} else {
		d.print([]byte("{"))
	}
	d.members++
	d.print(b)
}

// Begin starts a member whose value is a list. Item adds an item to this list. The next member ends the list.
func (d *Document) Begin(name string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.name(name)
	d.print([]byte("["))
	d.list, d.items = true, 0
}

// Item adds the value v, as one item, to the list that Begin has started.
func (d *Document) Item(v any) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := json.NewEncoder((*itemWriter)(d))
	e.SetEscapeHTML(false)
	d.note(e.Encode(v))
}

// itemWriter is an io.Writer that appends one item to the list in a Document. The JSON encoder writes into it
// directly, so that an item of many megabytes is not copied once more.
type itemWriter Document

func (w *itemWriter) Write(b []byte) (int, error) {
	d := (*Document)(w)
	if d.items++; d.items > 1 {
		d.print([]byte(","))
	}
	d.print(bytes.TrimSuffix(b, []byte("\n")))
	return len(b), nil
}

// Line writes one JSON object on a line of its own.
func (d *Document) Line(v any) error {
	b, err := encode(v)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(err)
	d.print(append(b, '\n'))
	if err := d.w.Flush(); d.err == nil {
		d.err = err
	}
	return d.err
}

func (d *Document) endList() {
	if d.list {
		d.print([]byte("]"))
		d.list = false
	}
}

// Discard drops all later output, because the reader has closed the pipe.
func (d *Document) Discard() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.err = true, nil
	d.w.Reset(io.Discard)
}

// close ends the document.
func (d *Document) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.err
	}
	defer func() { d.closed = true }()
	d.endList()
	if d.members == 0 && !d.Lines {
		d.print([]byte("{"))
		d.members++
	}
	if d.members > 0 {
		d.print([]byte("}\n"))
	}
	if err := d.w.Flush(); d.err == nil {
		d.err = err
	}
	return d.err
}

// note records err, if it is the first error.
func (d *Document) note(err error) {
	if d.err == nil {
		d.err = err
	}
}

// encode returns the JSON of a value, without a line feed.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"sync"
)

// document is the one JSON object that --json puts on stdout. Its members are
// written as they become known, so that a list of a million needs no memory,
// and the last of them can be the error that ended it.
//
// Without --json there is none: nothing happens then in what adds to it.
//
// Several goroutines may use it: one that ends it while another is still at work.
type document struct {
	mu      sync.Mutex
	closed  bool // what comes after the end is not written
	w       *bufio.Writer
	members int
	items   int
	list    bool
	lines   bool // of the command that goes on: what fails is the last of them
	err     error
}

func newDocument(w io.Writer) *document { return &document{w: bufio.NewWriterSize(w, 64<<10)} }

func (d *document) print(b []byte) {
	if d.closed {
		return
	}
	if _, err := d.w.Write(b); d.err == nil {
		d.err = err
	}
}

func (d *document) name(name string) {
	d.endList()
	open := []byte("{")
	if d.members > 0 {
		open = []byte(",")
	}
	d.members++
	d.print(open)
	b, err := d.encode(name)
	d.note(err)
	d.print(b)
	d.print([]byte(":"))
}

// member writes one member.
func (d *document) member(name string, v any) {
	if d == nil {
		return
	}
	b, err := d.encode(v)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(err)
	d.name(name)
	d.print(b)
}

// all writes the members of a struct.
func (d *document) all(v any) {
	if d == nil {
		return
	}
	b, err := d.encode(v)
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

// begin starts a member that is a list; item adds to it. The next member ends it.
func (d *document) begin(name string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.name(name)
	d.print([]byte("["))
	d.list, d.items = true, 0
}

// item adds to the list that was begun.
func (d *document) item(v any) {
	if d == nil {
		return
	}
	b, err := d.encode(v)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(err)
	if d.items > 0 {
		d.print([]byte(","))
	}
	d.items++
	d.print(b)
}

// line writes a document of its own.
func (d *document) line(v any) error {
	b, err := d.encode(v)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(err)
	d.print(append(b, '\n'))
	if err := d.w.Flush(); d.err == nil {
		d.err = err
	}
	return d.err
}

func (d *document) endList() {
	if d.list {
		d.print([]byte("]"))
		d.list = false
	}
}

// discard has it write nothing any more: nobody reads on.
func (d *document) discard() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.err = true, nil
	d.w.Reset(io.Discard)
}

// close ends the document.
func (d *document) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.err
	}
	defer func() { d.closed = true }()
	d.endList()
	if d.members == 0 && !d.lines {
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

// note keeps the first error.
func (d *document) note(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *document) encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

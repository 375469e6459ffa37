package memorytool

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/note"
)

// The name and the type of the tool in the API.
const (
	Name = "memory"
	Type = "memory_20250818"
)

// root is the path of the folder with everything that the model sees.
const root = "/memories"

// defaultView is the default of Options.ViewLimit. It is the number of characters that the description of the tool
// gives to the model.
const defaultView = 16_000

// Options are the settings of a Tool.
type Options struct {
	// Folder is the path of the folder of notes that the model sees as /memories, such as "agents/ada". ""
	// means all notes of the store.
	Folder string
	// Except is the name of a folder in /memories that the model does not see, in upper or lower case. "" means
	// none.
	Except string
	// Overwrite makes create replace an existing file, which the documentation of the tool does not allow.
	Overwrite bool
	// ViewLimit is the maximum number of characters of a file in a view. 0 means 16,000, a negative number no
	// limit.
	ViewLimit int
}

// Tool answers the calls of one model.
type Tool struct {
	notes   varve.Notes
	options Options
}

// New returns a tool whose files are the notes of a store. It returns an error if a path in the options is not
// valid for notes.
func New(notes varve.Notes, o Options) (*Tool, error) {
	if o.Folder != "" {
		if err := note.CheckPath(o.Folder); err != nil {
			return nil, err
		}
	}
	if o.ViewLimit == 0 {
		o.ViewLimit = defaultView
	}
	return &Tool{notes: notes, options: o}, nil
}

// Result is the answer to a call.
type Result struct {
	Text    string // text for the tool_result block
	IsError bool   // is_error of the tool_result block
	Image   *Image // image to show in addition to Text, if the file is an image
	Cause   error  // error of the store, for errors.Is; nil if the call itself was at fault
}

// Image is an image in the form of the API, in base64.
type Image struct {
	MediaType string // image/png, image/jpeg, image/gif or image/webp
	Data      []byte
}

// Err returns an error if the Result describes one, and nil otherwise. The text of the error does not have the prefix
// "Error: ", because tool runners add that prefix. The error matches Result.Cause.
func (r Result) Err() error {
	if !r.IsError {
		return nil
	}
	return &resultError{strings.TrimPrefix(r.Text, errorPrefix), r.Cause}
}

const errorPrefix = "Error: "

type resultError struct {
	text  string
	cause error
}

func (e *resultError) Error() string { return e.text }
func (e *resultError) Unwrap() error { return e.cause }

// refused is an error that the model gets as the answer to its call.
type refused struct {
	text  string
	cause error
}

func (r *refused) Error() string { return r.text }

// Call answers a call of the tool. input is the input of a tool_use block.
func (t *Tool) Call(ctx context.Context, input []byte) Result {
	r, err := t.call(ctx, input)
	var no *refused
	switch {
	case err == nil:
		return r
	case errors.As(err, &no):
		return Result{Text: no.text, IsError: true, Cause: no.cause}
	}
	return Result{Text: errorPrefix + err.Error(), IsError: true, Cause: err}
}

func (t *Tool) call(ctx context.Context, input []byte) (Result, error) {
	in, err := parse(input)
	if err != nil {
		return Result{}, err
	}
	var text string
	switch in.Command {
	case "view":
		return t.view(ctx, in)
	case "create":
		text, err = t.create(ctx, in)
	case "str_replace":
		text, err = t.replace(ctx, in)
	case "insert":
		text, err = t.insert(ctx, in)
	case "delete":
		text, err = t.remove(ctx, in)
	case "rename":
		text, err = t.rename(ctx, in)
	}
	return Result{Text: text}, err
}

// place is the file or folder that a path in a call names.
type place struct {
	shown string // path as answers show it
	path  string // path of the note or folder; "" for all notes
	root  bool   // the path is /memories
}

// hides reports whether rel, a path relative to /memories, is in the folder Options.Except, which the model does not
// see.
func (t *Tool) hides(rel string) bool {
	first, _, _ := strings.Cut(rel, "/")
	return t.options.Except != "" && strings.EqualFold(first, t.options.Except)
}

// place converts a path in a call. It returns an error if the path is not in /memories, is hidden from the model, or
// is not valid for a note.
func (t *Tool) place(path string) (place, error) {
	shown := strings.TrimRight(norm.NFC.String(path), "/")
	if shown == root {
		return place{shown: root, path: t.options.Folder, root: true}, nil
	}
	p := place{shown: strings.TrimRight(path, "/")}
	rel, ok := strings.CutPrefix(shown, root+"/")
	if !ok {
		return p, &refused{text: errorPrefix + "Path must start with /memories, got: " + path}
	}
	p.path = rel
	if t.options.Folder != "" {
		p.path = t.options.Folder + "/" + rel
	}
	if t.hides(rel) {
		return p, &refused{text: errorPrefix + "The path " + p.shown + " is reserved. Please choose another path."}
	}
	for segment := range strings.SplitSeq(rel, "/") {
		if segment == ".." {
			return p, &refused{text: errorPrefix + "Path " + path + " would escape /memories directory"}
		}
	}
	return p, note.CheckPath(p.path)
}

package server

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/project"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/mcpserver"
)

// The limits of tokens.
const (
	MostName    = 64   // maximum number of bytes of a token's name
	LeastSecret = 20   // minimum number of bytes of a secret that a user chose
	MostTokens  = 1000 // maximum number of tokens in a file
)

// secretBegin is the beginning of every secret that NewSecret returns. Programs that search files for secrets recognize
// Varve's tokens by it.
const secretBegin = "varve_"

// Sum is the SHA-256 of the secret of an access token. It identifies the token.
type Sum [sha256.Size]byte

// SumOf returns the Sum of the token that has the given secret.
func SumOf(secret string) Sum { return sha256.Sum256([]byte(secret)) }

// NewSecret returns the secret of a new token, with 256 random bits.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // Read never fails
	return secretBegin + base64.RawURLEncoding.EncodeToString(b[:])
}

// Token describes an access token: the rights of a client that presents the secret with this Sum.
type Token struct {
	Name     string // name of the token, shown in history as Writer.Token
	Sum      Sum
	ReadOnly bool
	// groups of tools that the token permits; nil permits all groups that the server offers, an empty list permits none
	Tools   []string
	Project string    // id of the project whose memories the token permits besides the shared ones; "": no project
	Stores  []string  // ids of the memory stores that the token permits; nil: all
	Page    bool      // the token permits the page, which shows the memories of all projects
	Created time.Time // time at which the token was created; zero if unknown
}

// sameRights reports whether two tokens have the same rights: equal values of ReadOnly, Page, Project, Tools and
// Stores.
func (t *Token) sameRights(o *Token) bool {
	same := func(a, b []string) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }
	return t.ReadOnly == o.ReadOnly && t.Page == o.Page && t.Project == o.Project && same(t.Tools, o.Tools) &&
		same(t.Stores, o.Stores)
}

// Validate returns the first invalid field as a *varve.FieldError, or nil.
func (t *Token) Validate() error {
	field := func(field, value, format string, args ...any) error {
		return &varve.FieldError{Field: field, Value: value,
			Err: fmt.Errorf("%w: "+format, append([]any{varve.ErrInvalid}, args...)...)}
	}
	switch {
	case t.Name == "":
		return field("name", t.Name, "the token has no name")
	case len(t.Name) > MostName:
		return field("name", t.Name, "the name is longer than %d bytes", MostName)
	case !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return field("name", t.Name, "the name has a character that is not printable")
	}
	if t.Project != "" && !project.IsID(t.Project) {
		return field("project", t.Project, "not the id of a project: memctl project list shows the ids")
	}
	if t.Stores != nil && len(t.Stores) == 0 {
		return field("stores", "", "the list is empty: name a memory store, or omit the list to permit all stores")
	}
	for _, id := range t.Stores {
		if !settings.IsStoreID(id) {
			return field("stores", id, "not the id of a memory store: such ids begin with %s", settings.StoreID)
		}
	}
	for _, g := range t.Tools {
		if !slices.Contains(mcpserver.Groups(), g) {
			return field("tools", g, "there is no such group of tools; the groups are %s", mcpserver.GroupNames())
		}
	}
	return nil
}

// tokenFile is the content of the token file as JSON.
type tokenFile struct {
	Version int          `json:"version"`
	Tokens  []tokenEntry `json:"tokens"`
}

type tokenEntry struct {
	Name     string    `json:"name"`
	Sum      string    `json:"sha256"`
	ReadOnly bool      `json:"read_only,omitempty"`
	Tools    []string  `json:"tools,omitzero"`
	Project  string    `json:"project,omitempty"`
	Stores   []string  `json:"stores,omitzero"`
	Page     bool      `json:"page,omitempty"`
	Created  time.Time `json:"created,omitzero"`
}

// parseTokens parses the content of a token file. If an entry is invalid, the error gives the number of the entry,
// counted from 1, and the fault.
func parseTokens(b []byte) ([]Token, error) {
	var f tokenFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields() // a restriction that this program does not know must not be ignored
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("%w: %w", varve.ErrInvalid, err)
	}
	if d.More() {
		return nil, fmt.Errorf("%w: the token file has more data after the JSON object", varve.ErrInvalid)
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("%w: the token file has version %d; this program reads only version 1", varve.ErrInvalid,
			f.Version)
	}
	if len(f.Tokens) > MostTokens {
		return nil, fmt.Errorf("%w: the token file has %d tokens; the limit is %d", varve.ErrInvalid, len(f.Tokens),
			MostTokens)
	}
	var list []Token
	names, sums := map[string]bool{}, map[Sum]bool{}
	for i, e := range f.Tokens {
		t := Token{Name: e.Name, ReadOnly: e.ReadOnly, Tools: e.Tools, Project: e.Project, Stores: e.Stores, Page: e.Page,
			Created: e.Created}
		sum, err := hex.DecodeString(e.Sum)
		switch {
		case err != nil || len(sum) != len(t.Sum):
			err = fmt.Errorf("%w: the value of sha256 is not 64 hex digits", varve.ErrInvalid)
		case names[e.Name]:
			err = fmt.Errorf("%w: the name %q occurs twice", varve.ErrInvalid, e.Name)
		case sums[Sum(sum)]:
			err = fmt.Errorf("%w: the token %q has the same sha256 as another token", varve.ErrInvalid, e.Name)
		default:
			err = t.Validate()
		}
		if err != nil {
			return nil, fmt.Errorf("token %d: %w", i+1, err)
		}
		t.Sum = Sum(sum)
		names[t.Name], sums[t.Sum] = true, true
		list = append(list, t)
	}
	return list, nil
}

// formatTokens returns the content of a token file that has the tokens in list, sorted by name.
func formatTokens(list []Token) []byte {
	f := tokenFile{Version: 1, Tokens: []tokenEntry{}}
	for _, t := range slices.SortedFunc(slices.Values(list), func(a, b Token) int { return cmp.Compare(a.Name, b.Name) }) {
		f.Tokens = append(f.Tokens, tokenEntry{t.Name, hex.EncodeToString(t.Sum[:]), t.ReadOnly, t.Tools, t.Project,
			t.Stores, t.Page, t.Created})
	}
	b, _ := json.MarshalIndent(f, "", "  ") // strings, bools and times of years that have four digits
	return append(b, '\n')
}

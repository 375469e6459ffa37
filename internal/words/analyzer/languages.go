package analyzer

import (
	"maps"
	"slices"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
)

// English and None are two of the languages; the others are ISO 639-1 codes.
const (
	English = "en"
	None    = "none"
)

var stemmers = map[string]func(*snowballstem.Env) bool{
	"ar": arabic.Stem,
	"da": danish.Stem,
	"de": german.Stem,
	"en": english.Stem,
	"es": spanish.Stem,
	"fi": finnish.Stem,
	"fr": french.Stem,
	"ga": irish.Stem,
	"hu": hungarian.Stem,
	"it": italian.Stem,
	"nl": dutch.Stem,
	"no": norwegian.Stem,
	"pt": portuguese.Stem,
	"ro": romanian.Stem,
	"ru": russian.Stem,
	"sv": swedish.Stem,
	"ta": tamil.Stem,
	"tr": turkish.Stem,
}

// Languages returns the languages that New supports, None last.
func Languages() []string { return append(slices.Sorted(maps.Keys(stemmers)), None) }

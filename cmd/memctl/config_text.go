package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/template"
	"github.com/varve-db/varve/internal/words/query"
)

// The names of settings that are inside an object of config.json, not at its top level.
const (
	textFields    = "text.fields"
	embedTemplate = "vectors.template"
	queryTemplate = "vectors.query_template"
)

// notesIgnore is the name of the setting that is a list of texts.
const notesIgnore = "notes_ignore"

// keepTemplate is the value that restores the default template.
const keepTemplate = "keep"

// searchedFields returns, as text, which members of the metadata each field of a query searches. A field that c does
// not configure is shown with its default.
func searchedFields(c *varve.Config) string {
	if c.Text != nil {
		if s, err := query.ReadSources(c.Text.Fields); err == nil {
			return s.String()
		}
	}
	return query.DefaultSources().String()
}

// assignFields sets text.fields to a value in the form "speaker=from,author tag=labels", or in the form of
// config.json.
func assignFields(c *varve.Config, value string) error {
	var given map[string][]string
	var err error
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		if err = json.Unmarshal([]byte(value), &given); err != nil {
			err = &varve.FieldError{Field: textFields, Value: fmt.Sprintf("%q", value), Err: err}
		}
	} else {
		given, err = query.ParseSources(value)
	}
	if err != nil {
		return err
	}
	if c.Text = nil; len(given) > 0 {
		c.Text = &varve.TextConfig{Fields: given}
	}
	return nil
}

func vectorsOf(c *varve.Config) varve.VectorConfig {
	if c.Vectors == nil {
		return varve.VectorConfig{}
	}
	return *c.Vectors
}

// assignTemplate sets a template. It does not modify the configuration from which c was copied.
func assignTemplate(c *varve.Config, name, value string) {
	v := vectorsOf(c)
	switch {
	case name == queryTemplate && value == template.Query:
		v.QueryTemplate = ""
	case name == queryTemplate:
		v.QueryTemplate = cmp.Or(value, " ") // " ": no template
	case value == keepTemplate:
		v.Template = ""
	default:
		v.Template = value
	}
	if c.Vectors = &v; v == (varve.VectorConfig{}) {
		c.Vectors = nil
	}
}

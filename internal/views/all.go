package views

import (
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/view"
	"github.com/varve-db/varve/internal/view/meanings"
	"github.com/varve-db/varve/internal/view/words"
)

// Maker is a function that makes an instance of a view.
type Maker func(eng *engine.Engine) view.View

// All has the views of every store. Tests can add views with Environment.Views.
var All = []Maker{words.New, words.NewSections, meanings.New}

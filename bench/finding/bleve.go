package main

import (
	"path/filepath"

	"github.com/blevesearch/bleve/v2"
	_ "github.com/blevesearch/bleve/v2/analysis/lang/en" // the analyzer "en"
	"github.com/blevesearch/bleve/v2/search/query"
	index "github.com/blevesearch/bleve_index_api"
)

// bleved is an index of bleve with its defaults, which does not store the texts: English stems and stop words,
// BM25. A put is durable when it returns. Only one process can have it open.
type bleved struct{ ix bleve.Index }

type bleveDoc struct {
	Text    string `json:"text"`
	Session string `json:"session"`
}

func (b *bleved) Open(dir string) (err error) {
	path := filepath.Join(dir, "bleve")
	if b.ix, err = bleve.Open(path); err != bleve.ErrorIndexPathDoesNotExist {
		return err
	}
	text, session := bleve.NewTextFieldMapping(), bleve.NewKeywordFieldMapping()
	text.Analyzer = "en"
	text.Store, text.IncludeTermVectors, text.IncludeInAll, text.DocValues = false, false, false, false
	session.Store, session.IncludeTermVectors, session.IncludeInAll, session.DocValues = false, false, false, false
	docs := bleve.NewDocumentStaticMapping()
	docs.AddFieldMappingsAt("text", text)
	docs.AddFieldMappingsAt("session", session)
	m := bleve.NewIndexMapping()
	m.DefaultMapping, m.ScoringModel = docs, index.BM25Scoring
	b.ix, err = bleve.New(path, m)
	return err
}

func (b *bleved) PutAll(docs func(yield func(doc) bool)) (err error) {
	batch := b.ix.NewBatch()
	docs(func(d doc) bool {
		if err = batch.Index(d.id, bleveDoc{d.text, d.session}); err == nil && batch.Size() == 1000 {
			err = b.ix.Batch(batch)
			batch.Reset()
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	return b.ix.Batch(batch)
}

func (b *bleved) Put(d doc) error { return b.ix.Index(d.id, bleveDoc{d.text, d.session}) }

func (b *bleved) Search(text, session string, _ bool) error {
	match := bleve.NewMatchQuery(text)
	match.SetField("text")
	var q query.Query = match
	if session != "" {
		in := bleve.NewTermQuery(session)
		in.SetField("session")
		in.SetBoost(0)
		q = bleve.NewConjunctionQuery(match, in)
	}
	_, err := b.ix.Search(bleve.NewSearchRequestOptions(q, 10, 0, false))
	return err
}

func (b *bleved) Close() error { return b.ix.Close() }

func (b *bleved) Index(dir string, _ int, _ int64) int64 { return size(dir) }

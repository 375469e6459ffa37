// Package metrics provides numbers about a store to Prometheus, for a program that embeds the store and for
// memctl serve.
//
//	registry.MustRegister(metrics.New(func() *varve.Store { return st }))
//
// # Metrics
//
// The metrics are in base units, without labels by memory, session or user. Counters begin at 0 with the
// process, and count what this process did; gauges are about the whole store, as changed by all processes.
//
//	varve_memories, varve_assemblies               number of documents
//	varve_store_bytes{part}                        bytes of the files of memories, index, vectors, history
//	varve_log_bytes                                log that the next open would read
//	varve_backlog_bytes                            log that is not in files yet
//	varve_backlog_limit_bytes                      setting backlog_bytes; beyond half of it, writers are slowed
//	varve_view_lag_bytes{view}                     log that the index, or the vectors, do not cover yet
//	varve_operations_total{operation,result}       calls; result is ok or error
//	varve_operation_duration_seconds{operation}    histogram; of get one call in sixteen
//	varve_fsync_duration_seconds                   histogram: syncs of the log
//	varve_lock_wait_seconds                        histogram: waits for locks of other processes
//	varve_flush_duration_seconds                   histogram: rounds of the flusher
//	varve_slowed_seconds_total                     time by which writers were slowed for the flusher to catch up
//	varve_embed_pending                            memories that wait for their vectors
//	varve_healthy                                  1 if Health has no problems
//	varve_writable                                 1 if the store can be written
//	varve_damaged                                  problems that are damage; memctl verify finds all of it
//	varve_recovered_entries                        entries of the log that opening the store read
//	varve_embedder_up                              0 while the embedder fails; missing without an embedder
//	varve_problems                                 number of problems that Health has
//	varve_disk_free_bytes, varve_disk_low_bytes    free on the store's disk; the store warns below the second
//	varve_quarantined_files                        documents that were set aside
//	varve_processes                                processes that have the store open to write
//	varve_backup_last_success_timestamp_seconds    newest full backup in the store's own backups/; 0 without one
//	varve_copy_behind_bytes                        log that the copy elsewhere lacks; missing without a copy
//	varve_copy_lag_seconds                         time since all of the log was sent, 0 while nothing is missing; up
//	                                               to a minute more, because the last success is recorded each minute
//	varve_copy_last_success_timestamp_seconds      last time that all of the log was sent; 0 if never
//	varve_copy_failing                             1 if the last attempt to send failed, or no process sends
//
// Calls adds, for a server of package mcpserver:
//
//	mcp_server_operation_duration_seconds{mcp_method_name,gen_ai_tool_name,error_type}   histogram: requests of clients;
//	                                               error_type is "" or tool_error, or error for a refused request
package metrics

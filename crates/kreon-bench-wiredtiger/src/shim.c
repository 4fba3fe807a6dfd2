/*
 * WiredTiger's interface is structs of function pointers, some of them variadic, whose layout differs between versions.
 * The compiler reads it from the header here; Rust sees plain functions and pointers to types that it knows nothing of.
 *
 * Functions with a result of type int return 0, or an error of WiredTiger or of the system.
 */
#include <stddef.h>
#include <string.h>

#include <wiredtiger.h>

int kreon_wt_is_not_found(int error) { return error == WT_NOTFOUND; }

int kreon_wt_is_rollback(int error) { return error == WT_ROLLBACK; }

const char *kreon_wt_version(void) { return wiredtiger_version(NULL, NULL, NULL); }

void kreon_wt_describe(int error, char *text, size_t text_bytes) {
    strncpy(text, wiredtiger_strerror(error), text_bytes - 1);
    text[text_bytes - 1] = 0;
}

int kreon_wt_open(const char *home, const char *config, WT_CONNECTION **connection) {
    return wiredtiger_open(home, NULL, config, connection);
}

int kreon_wt_close(WT_CONNECTION *connection) { return connection->close(connection, NULL); }

int kreon_wt_open_session(WT_CONNECTION *connection, WT_SESSION **session) {
    return connection->open_session(connection, NULL, NULL, session);
}

int kreon_wt_close_session(WT_SESSION *session) { return session->close(session, NULL); }

int kreon_wt_create(WT_SESSION *session, const char *uri, const char *config) {
    return session->create(session, uri, config);
}

int kreon_wt_open_cursor(WT_SESSION *session, const char *uri, WT_CURSOR **cursor) {
    return session->open_cursor(session, uri, NULL, NULL, cursor);
}

int kreon_wt_checkpoint(WT_SESSION *session) { return session->checkpoint(session, NULL); }

int kreon_wt_flush_log(WT_SESSION *session) { return session->log_flush(session, "sync=on"); }

int kreon_wt_begin(WT_SESSION *session) {
    return session->begin_transaction(session, "isolation=snapshot");
}

int kreon_wt_commit_buffered(WT_SESSION *session) {
    return session->commit_transaction(session, "sync=off");
}

int kreon_wt_rollback(WT_SESSION *session) { return session->rollback_transaction(session, NULL); }

static void set_key(WT_CURSOR *cursor, const void *key, size_t key_bytes) {
    WT_ITEM item = {0};
    item.data = key;
    item.size = key_bytes;
    cursor->set_key(cursor, &item);
}

int kreon_wt_put(WT_CURSOR *cursor, const void *key, size_t key_bytes, const void *value,
                 size_t value_bytes) {
    WT_ITEM item = {0};
    item.data = value;
    item.size = value_bytes;
    set_key(cursor, key, key_bytes);
    cursor->set_value(cursor, &item);
    return cursor->insert(cursor);
}

int kreon_wt_delete(WT_CURSOR *cursor, const void *key, size_t key_bytes) {
    set_key(cursor, key, key_bytes);
    return cursor->remove(cursor);
}

int kreon_wt_search(WT_CURSOR *cursor, const void *key, size_t key_bytes) {
    set_key(cursor, key, key_bytes);
    return cursor->search(cursor);
}

/* The first record whose key is not below the given one, which may be empty; keys of records are not. */
int kreon_wt_seek(WT_CURSOR *cursor, const void *key, size_t key_bytes) {
    int error, order;

    if (key_bytes == 0) {
        error = cursor->reset(cursor);
        return error == 0 ? cursor->next(cursor) : error;
    }
    set_key(cursor, key, key_bytes);
    error = cursor->search_near(cursor, &order);
    if (error == 0 && order < 0)
        error = cursor->next(cursor);
    return error;
}

int kreon_wt_next(WT_CURSOR *cursor) { return cursor->next(cursor); }

int kreon_wt_key(WT_CURSOR *cursor, const void **key, size_t *key_bytes) {
    WT_ITEM item = {0};
    int error = cursor->get_key(cursor, &item);

    *key = item.data;
    *key_bytes = item.size;
    return error;
}

int kreon_wt_value(WT_CURSOR *cursor, const void **value, size_t *value_bytes) {
    WT_ITEM item = {0};
    int error = cursor->get_value(cursor, &item);

    *value = item.data;
    *value_bytes = item.size;
    return error;
}

int kreon_wt_reset(WT_CURSOR *cursor) { return cursor->reset(cursor); }

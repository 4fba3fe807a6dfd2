# Read by Redis' test_helper.tcl behind its own support files: how its tests run against another server.
#
# Its units set how small collections are encoded in memory, so that each test runs once with every encoding. Here
# these settings are answered without a server, and the tests run with what the server does: another encoding must
# show no other replies.

namespace eval kreon {
    variable encodings {
        *-max-listpack-* *-max-ziplist-* *-max-intset-* list-compress-depth save appendonly rdb-key-save-delay
        rdbcompression
    }
    # What the server knows, asked for once, and what the present test wanted beyond that.
    variable commands {}
    variable unknown {}
    variable password {}
    if {[info exists ::env(KREON_PASSWORD)]} {
        set password $::env(KREON_PASSWORD)
    }
}

# Whether a request is about encodings, and if so its reply in `reply`.
proc ::kreon::answer {method arguments reply} {
    upvar 1 $reply answer
    set sub [string tolower [lindex $arguments 0]]
    set name [string tolower [lindex $arguments 1]]
    switch -- [string tolower $method] {
        config {
            foreach pattern $::kreon::encodings {
                if {[string match $pattern $name]} {
                    set answer [expr {$sub eq {get} ? [list $name 0] : {OK}}]
                    return 1
                }
            }
        }
        object {
            if {$sub eq {refcount}} {
                set answer 1
                return 1
            }
        }
        debug {
            if {$sub in {quicklist-packed-threshold listpack-entries}} {
                set answer OK
                return 1
            }
        }
        function {
            # Before each unit; there are no functions.
            set answer OK
            return 1
        }
    }
    return 0
}

# Whether the server knows a command; methods of the client itself are none.
proc ::kreon::knows {id method} {
    if {[info command ::redis::__method__$method] ne {} || $::kreon::commands eq {asking}} {
        return 1
    }
    if {$::kreon::commands eq {}} {
        set ::kreon::commands asking
        set asked [redis $::host $::port]
        if {$::kreon::password ne {}} {
            $asked auth $::kreon::password
        }
        set ::kreon::commands [string tolower [$asked command list]]
        $asked close
    }
    return [expr {[string tolower $method] in $::kreon::commands}]
}

rename ::redis::__dispatch__ ::kreon::dispatch
proc ::redis::__dispatch__ {id method args} {
    if {!$::redis::deferred($id) && [::kreon::answer $method $args reply]} {
        return $reply
    }
    if {![::kreon::knows $id $method]} {
        set ::kreon::unknown [string tolower $method]
        if {$::redis::deferred($id)} {
            # Nobody may ever read the reply, but the test may wait for what it did.
            error "ERR unknown command '$method'"
        }
    }
    set code [catch {::kreon::dispatch $id $method {*}$args} reply]
    if {[string match NOAUTH* $reply] && $method in {select flushall}} {
        # Before each unit, which does not expect a password.
        return OK
    }
    return -code $code $reply
}

# A test that failed half way leaves its connections in any state, which the next tests would fail by: they get a new
# one. And why it failed: a command that the server does not know.
rename ::test ::kreon::test
proc ::test {name code {okpattern undefined} {tags {}}} {
    set ::kreon::unknown {}
    set failed $::num_failed
    set id $::redis::id
    set result [uplevel 1 [list ::kreon::test $name $code $okpattern $tags]]
    if {$::num_failed > $failed} {
        if {$::kreon::unknown ne {}} {
            send_data_packet $::test_server_fd unknown $::kreon::unknown
        }
        set last $::redis::id
        catch {reconnect}
        while {[incr id] <= $last} {
            catch {::redis::redisHandle$id close}
        }
    }
    return $result
}

# The unit of AUTH starts servers of its own, with a password and without. Here it runs once against a server without,
# and once against one that got KREON_PASSWORD; each time the part for such a server.
rename ::start_server ::kreon::start_server
proc ::start_server {options {code undefined}} {
    if {$::curfile eq {tests/unit/auth.tcl}} {
        set password {}
        if {[dict exists $options overrides]} {
            set password [dict get $options overrides requirepass]
        }
        set tags [join [dict get $options tags]]
        if {$password ne $::kreon::password || {auth} ni $tags} {
            return
        }
        set options [list tags auth]
    }
    uplevel 1 [list ::kreon::start_server $options $code]
}

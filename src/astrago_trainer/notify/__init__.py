"""Messages about jobs that completed, failed or were restarted: by webhook, to a chat, by mail.

`notices` says what happened and to whom it goes, `texts` puts it into words, `formats` into the form of each medium;
these are pure. `deliverer` takes what is due from an `Outbox` and sends it, at least once and under a stable id.
"""

"""The decisions of the I/O shell as pure code: when to write, hold back, cut, save and confirm.

``turn`` joins the parts, ``outbound`` keeps what waits for a slow peer, ``saving`` paces the
storage, ``lines`` bounds the calls to code outside, ``admitting`` delays refused log-ins, and
``world`` names what is left to do for whoever has sockets, threads and a clock.
"""

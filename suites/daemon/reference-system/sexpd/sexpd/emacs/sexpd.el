;;; sexpd.el --- Client of the sexpd daemon -*- lexical-binding: t; -*-

;;; Commentary:

;; Speaks framed s-expressions with sexpd over a loopback port.
;;
;;   (sexpd-connect "127.0.0.1" 9105)      connect, read the handshake
;;   (sexpd-send-text "text")              user input; returns the answer's text
;;   (sexpd-flight-plan "Title: a; b")     a Flight Plan as a node (a plist)
;;   (sexpd-insert-node NODE)              insert a node at point, as an Org heading
;;   M-x sexpd-insert-flight-plan          ask for a plan, insert its node at point
;;
;; In batch:
;;   emacs --batch -l sexpd.el --eval '(sexpd-batch-say "127.0.0.1" 9105 "text")'
;;   emacs --batch -l sexpd.el --eval \
;;     '(sexpd-batch-insert-flight-plan "127.0.0.1" 9105 "plan.org" "Title: a; b")'
;; Both end with status 0, or with 1 and a message that says why.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defgroup sexpd nil "Client of the sexpd daemon." :group 'communication)

(defcustom sexpd-timeout-s 10
  "Seconds to wait for an answer of the daemon."
  :type 'number)

(defvar sexpd--process nil "The connection.")
(defvar sexpd-handshake nil "The handshake of the connection, a plist.")

(define-error 'sexpd-error "sexpd")

;;;; Writing and reading

(defun sexpd--print (value)
  "VALUE as the text of an s-expression."
  (cond ((null value) "NIL")
        ((eq value t) "T")
        ((keywordp value) (upcase (symbol-name value)))
        ((symbolp value) (upcase (symbol-name value)))
        ((numberp value) (number-to-string value))
        ((stringp value)
         (concat "\"" (replace-regexp-in-string "[\\\"]" "\\\\\\&" value) "\""))
        ((consp value) (concat "(" (mapconcat #'sexpd--print value " ") ")"))
        (t (signal 'sexpd-error (list "cannot print" value)))))

(defun sexpd--frame (value)
  "VALUE as a frame: the length in characters, then the text."
  (let ((text (sexpd--print value)))
    (format "%06X%s" (length text) text)))

(defun sexpd--read-value ()
  "Read one value at point.  Nothing is evaluated, no Lisp reader is involved."
  (skip-chars-forward " \t\r\n\f")
  (let ((char (char-after)))
    (cond
     ((null char) (signal 'sexpd-error '("the text ended early")))
     ((eq char ?\() (forward-char) (sexpd--read-list))
     ((eq char ?\") (forward-char) (sexpd--read-string))
     ((looking-at "[^][()\"'`,;# \t\r\n\f]+")
      (goto-char (match-end 0))
      (sexpd--atom (match-string 0)))
     (t (signal 'sexpd-error (list "cannot read" (string char)))))))

(defun sexpd--read-list ()
  "Read values up to a closing parenthesis."
  (let (items)
    (while (progn (skip-chars-forward " \t\r\n\f") (not (eq (char-after) ?\))))
      (push (sexpd--read-value) items))
    (forward-char)
    (nreverse items)))

(defun sexpd--read-string ()
  "Read the rest of a string; a backslash makes the next character literal."
  (let (parts)
    (while (not (eq (char-after) ?\"))
      (when (eq (char-after) ?\\) (forward-char))
      (unless (char-after) (signal 'sexpd-error '("a string does not end")))
      (push (char-after) parts)
      (forward-char))
    (forward-char)
    (apply #'string (nreverse parts))))

(defun sexpd--atom (token)
  "The value of TOKEN."
  (let ((name (upcase token)))
    (cond ((equal name "NIL") nil)
          ((equal name "T") t)
          ((string-match-p "\\`[-+]?[0-9]+\\(\\.[0-9]+\\)?\\'" token) (string-to-number token))
          ((string-prefix-p ":" name) (intern (downcase name)))
          (t (intern (downcase name))))))

(defun sexpd--take-frame (process)
  "Take one whole frame out of the buffer of PROCESS; nil when there is none yet."
  (with-current-buffer (process-buffer process)
    (goto-char (point-min))
    (skip-chars-forward " \t\r\n\f")
    (delete-region (point-min) (point))
    (when (looking-at "[0-9A-Fa-f]\\{6\\}")
      (let* ((length (string-to-number (match-string 0) 16))
             (start (match-end 0))
             (end (+ start length)))
        (when (<= end (point-max))
          (prog1 (save-restriction
                   (narrow-to-region start end)
                   (goto-char (point-min))
                   (sexpd--read-value))
            (delete-region (point-min) end)))))))

;;;; The connection

(defun sexpd-connect (host port)
  "Connect to the daemon at HOST and PORT and read its handshake."
  (interactive "sHost: \nnPort: ")
  (sexpd-disconnect)
  (let ((buffer (generate-new-buffer " *sexpd*")))
    (condition-case failure
        (setq sexpd--process
              (make-network-process :name "sexpd" :host host :service port :buffer buffer
                                    :coding 'utf-8-unix :noquery t :sentinel #'ignore))
      (file-error
       (kill-buffer buffer)
       (signal 'sexpd-error (list "cannot connect" (nth 2 failure)))))
    (setq sexpd-handshake (sexpd--receive))
    (unless (eq (plist-get (plist-get sexpd-handshake :payload) :action) :handshake)
      (sexpd-disconnect)
      (signal 'sexpd-error '("no handshake: something else listens there")))
    sexpd-handshake))

(defun sexpd-disconnect ()
  "Close the connection."
  (interactive)
  (when sexpd--process
    (let ((buffer (process-buffer sexpd--process)))
      (delete-process sexpd--process)
      (when (buffer-live-p buffer) (kill-buffer buffer)))
    (setq sexpd--process nil)))

(defun sexpd--receive ()
  "The next message of the daemon, a plist."
  (let ((until (+ (float-time) sexpd-timeout-s)) message)
    (while (not (setq message (sexpd--take-frame sexpd--process)))
      (when (> (float-time) until)
        (signal 'sexpd-error (list "no answer within seconds" sexpd-timeout-s)))
      (unless (or (accept-process-output sexpd--process 0.2)
                  (process-live-p sexpd--process))
        (signal 'sexpd-error '("the connection is closed"))))
    message))

(defun sexpd-request (message)
  "Send MESSAGE, a plist, and return the answer; an error LOG is signalled."
  (unless (and sexpd--process (process-live-p sexpd--process))
    (signal 'sexpd-error '("not connected; call sexpd-connect")))
  (process-send-string sexpd--process (sexpd--frame message))
  (let* ((answer (sexpd--receive)) (payload (plist-get answer :payload)))
    (when (eq (plist-get answer :type) :log)
      (signal 'sexpd-error (list (plist-get payload :text))))
    answer))

(defun sexpd-send-text (text)
  "Send TEXT as user input and return the text of the answer."
  (interactive "sText: ")
  (let* ((answer (sexpd-request
                  (list :meta '(:source :emacs) :type :event
                        :payload (list :sensor :user-input :text text))))
         (reply (plist-get (plist-get answer :payload) :text)))
    (when (called-interactively-p 'interactive) (message "%s" reply))
    reply))

;;;; Flight Plans

(defun sexpd-flight-plan (text &optional id)
  "The node of the Flight Plan TEXT, a plist, with ID or one of its own."
  (plist-get (plist-get (sexpd-request
                         (list :meta '(:source :emacs) :type :request :target :flight-plan
                               :payload (append (list :action :node :text text)
                                                (and id (list :id id)))))
                        :payload)
             :node))

(defun sexpd--level ()
  "The level of the Org heading that point is under, or 0."
  (save-excursion
    (if (re-search-backward "^\\(\\*+\\) " nil t) (length (match-string 1)) 0)))

(defun sexpd--property-id (node)
  "The ID of NODE."
  (plist-get (plist-get node :properties) :id))

(defun sexpd-holds-node-p (node)
  "Whether this buffer holds NODE already."
  (let ((id (sexpd--property-id node))
        (case-fold-search nil))
    (and id (save-excursion
              (goto-char (point-min))
              (re-search-forward
               (concat "^[ \t]*:[Ii][Dd]:[ \t]+" (regexp-quote id) "[ \t]*$") nil t)))))

(defun sexpd--one-line (text)
  "TEXT on one line."
  (string-trim (replace-regexp-in-string "[\n\r]+" " " text)))

(defun sexpd-insert-node (node &optional level)
  "Insert NODE at point as an Org heading of LEVEL.
Without LEVEL it goes below the heading that point is under.
Return nil, and insert nothing, if the buffer holds it already."
  (unless (sexpd-holds-node-p node)
    (let* ((level (or level (1+ (sexpd--level))))
           (stars (make-string level ?*))
           (properties (plist-get node :properties)))
      (unless (bolp) (insert "\n"))
      (insert stars " " (plist-get node :todo) " " (sexpd--one-line (plist-get node :title)) "\n")
      (insert ":PROPERTIES:\n")
      (while properties
        (insert (upcase (symbol-name (car properties))) ": "
                (sexpd--one-line (format "%s" (cadr properties))) "\n")
        (setq properties (cddr properties)))
      (insert ":END:\n")
      (dolist (step (plist-get node :steps))
        (insert stars "* TODO " (sexpd--one-line step) "\n"))
      t)))

(defun sexpd-insert-flight-plan (text)
  "Ask the daemon for the Flight Plan TEXT and insert its node at point."
  (interactive "sPlan: ")
  (sexpd-insert-node (sexpd-flight-plan text)))

;;;; Batch

(defun sexpd--batch (function)
  "Call FUNCTION, print what it returns, end with a status that tells."
  (condition-case failure
      (progn (princ (format "%s\n" (funcall function)))
             (sexpd-disconnect)
             (kill-emacs 0))
    (error (message "sexpd: %s" (mapconcat (lambda (part) (format "%s" part))
                                           (cdr failure) ": "))
           (kill-emacs 1))))

(defun sexpd-batch-say (host port text)
  "Connect to HOST and PORT, send TEXT, print the answer."
  (sexpd--batch (lambda () (sexpd-connect host port) (sexpd-send-text text))))

(defun sexpd-batch-insert-flight-plan (host port file text &optional heading)
  "Connect to HOST and PORT and add the node of the plan TEXT to FILE.
It goes to the end, or to the end of the subtree of HEADING."
  (sexpd--batch
   (lambda ()
     (sexpd-connect host port)
     (let ((node (sexpd-flight-plan text)))
       (with-current-buffer (find-file-noselect file)
         (goto-char (point-max))
         (let* ((level (if heading (1+ (sexpd--go-to-end-of heading)) 1))
                (inserted (sexpd-insert-node node level)))
           (save-buffer)
           (if inserted (sexpd--property-id node) "held already")))))))

(defun sexpd--go-to-end-of (heading)
  "Move to the end of the subtree of the Org HEADING and return its level."
  (goto-char (point-min))
  (unless (let ((case-fold-search nil))
            (re-search-forward
             (concat "^\\(\\*+\\) +\\(?:[A-Z]+ +\\)?" (regexp-quote heading) "[ \t]*$") nil t))
    (signal 'sexpd-error (list "no heading" heading)))
  (let ((level (length (match-string 1))) (found nil))
    (forward-line 1)
    (while (and (not found) (not (eobp)))
      (if (and (looking-at "\\(\\*+\\) ") (<= (length (match-string 1)) level))
          (setq found t)
        (forward-line 1)))
    level))

(provide 'sexpd)
;;; sexpd.el ends here
